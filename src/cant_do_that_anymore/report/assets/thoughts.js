/* The thoughts before a reply: folded, and every move in them can be pointed at on the board. */

/** The text in pieces, of which those that name a move point at it. */
function withMoves(text, named) {
  const written = Object.keys(named).sort((a, b) => b.length - a.length);
  if (!written.length) return [text];
  const moves = new RegExp(`(?<![\\w-])(${written.join("|")})(?![\\w-])`);
  return text.split(moves).map((piece, place) => (place % 2 ? pointer(piece, named[piece]) : piece));
}

function pointer(text, uci) {
  const usual = shown.usual.some((move) => move.uci === uci);
  const made = element("span", usual ? "pointer usual" : "pointer", text);
  made.dataset.uci = uci;
  made.tabIndex = 0;
  return made;
}

function describeThoughts(panel, reply) {
  const folded = panel.querySelector("details");
  if (folded) folded.hidden = !reply.thoughts;
  if (!reply.thoughts) return;
  const tokens = reply.tokens[2].toLocaleString("en");
  folded.querySelector("summary").textContent = `Reasoning: ${tokens} tokens`;
  fill(folded.querySelector("pre"), reply.thoughts, (part) => withMoves(part, reply.named));
}

function point(event) {
  const { uci } = event.target.dataset;
  if (!uci) return;
  const board = section.querySelector(".board");
  board.querySelector(".pointed")?.remove();
  if (!event.type.endsWith("out")) board.append(arrow(uci, "pointed", 5, 0));
}

for (const kind of ["mouseover", "focusin", "mouseout", "focusout"]) section.addEventListener(kind, point);
