/* The sample browser: filters, steps, links. Whatever a model wrote enters as text, never as HTML. */

const samples = JSON.parse(document.getElementById("data").textContent);
const section = document.getElementById("samples");
const form = section.querySelector("form");
const list = section.querySelector(".list");
const RULE_SETS = ["standard", "variant"];

let matching = [];
let shown = null;

function element(name, style, ...children) {
  const made = document.createElement(name);
  if (style) made.className = style;
  made.append(...children);
  return made;
}

function fillFilters() {
  for (const ruleSet of RULE_SETS) {
    const counts = new Map();
    for (const sample of samples) {
      const outcome = sample[ruleSet].outcome;
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    form.elements[ruleSet].append(new Option("any outcome", ""));
    for (const [outcome, count] of [...counts].sort((a, b) => b[1] - a[1])) {
      form.elements[ruleSet].append(new Option(`${outcome} (${count})`, outcome));
    }
  }
}

/** Whether the special move or an answer contains the wanted text, or the game begins with it. */
function hasMove(sample, wanted) {
  if (!wanted) return true;
  if (wanted.startsWith("1.")) return sample.moves.toLowerCase().startsWith(wanted);
  return [...sample.special, sample.standard.move, sample.variant.move].some(
    (move) => move && `${move.uci} ${move.text}`.toLowerCase().includes(wanted),
  );
}

function applyFilters() {
  const { standard, variant, move } = form.elements;
  const wanted = move.value.trim().toLowerCase();
  matching = samples.filter(
    (sample) =>
      (!standard.value || sample.standard.outcome === standard.value) &&
      (!variant.value || sample.variant.outcome === variant.value) &&
      hasMove(sample, wanted),
  );
  list.replaceChildren(...matching.map(listed));
  show(matching.includes(shown) ? shown : matching[0] ?? null);
}

function listed(sample) {
  const many = sample.special.length > 1;
  const link = element(
    "a", "",
    element("b", "", many ? `${sample.special.length} moves` : sample.special[0].text),
    element("span", `is-${sample.standard.outcome}`, sample.standard.outcome),
    element("span", `is-${sample.variant.outcome}`, sample.variant.outcome),
  );
  link.href = `#sample=${sample.id}`;
  return element("li", "", link);
}

function show(sample) {
  shown = sample;
  const place = matching.indexOf(sample);
  form.querySelector("output").textContent = sample
    ? `${(place + 1).toLocaleString("en")} of ${matching.length.toLocaleString("en")}`
    : "none matches";
  section.querySelector(".browser").hidden = !sample;
  if (!sample) return;
  drawBoard(section.querySelector(".board"), sample);
  describeGame(sample);
  for (const ruleSet of RULE_SETS) describeAnswer(ruleSet, sample[ruleSet]);
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const item = list.children[place];
  item.firstChild.setAttribute("aria-current", "true");
  list.scrollTop = item.offsetTop - list.offsetTop - list.clientHeight / 2;
}

function describeGame(sample) {
  const toMove = sample.fen.split(" ")[1] === "w" ? "White" : "Black";
  const game = sample.moves || "The initial position";
  section.querySelector(".board").setAttribute("aria-label", `${toMove} to move. ${sample.fen}`);
  section.querySelector(".game").replaceChildren(
    game.replaceAll(". ", ".\u00a0").replaceAll("-", "\u2011"), element("span", "to-move", `${toMove} to move`),
  );
  const identity = section.querySelector(".identity");
  identity.replaceChildren(`sample ${sample.id}, game ${sample.game}`);
  if (sample.source.startsWith("https://")) {
    const link = element("a", "", sample.source);
    link.href = sample.source;
    identity.append(", ", link);
  } else if (sample.source) identity.append(`, ${sample.source}`);
  section.querySelector(".legend .special b").textContent = sample.special
    .map((move) => move.text)
    .join(", ");
}

function describeAnswer(ruleSet, answer) {
  const panel = section.querySelector(`article.${ruleSet}`);
  const outcome = panel.querySelector(".outcome");
  outcome.textContent = answer.outcome;
  outcome.className = `outcome is-${answer.outcome}`;
  const [beginning, leftOut, end] = [answer.reply].flat();
  const reply = panel.querySelector("pre");
  reply.textContent = beginning;
  if (leftOut) {
    const note = `… ${leftOut.toLocaleString("en")} characters are left out here …`;
    reply.append(element("span", "left-out", note), end);
  }
  reply.classList.toggle("empty", !beginning);
  const [tokensIn, tokensOut] = answer.tokens;
  panel.querySelector(".remark").textContent =
    answer.error || `${answer.stop}, ${tokensIn} tokens in, ${tokensOut} out`;
  section.querySelector(`.legend .${ruleSet} b`).textContent = answer.move
    ? answer.move.text === answer.move.uci
      ? answer.move.uci
      : `${answer.move.text} (${answer.move.uci})`
    : "none";
}

function step(by) {
  const next = matching[matching.indexOf(shown) + by];
  if (!next) return;
  show(next);
  history.replaceState(null, "", `#sample=${next.id}`);
}

/** Follow a link: to one sample, or to those with given outcomes or moves. */
function followLink() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const sample = samples.find(({ id }) => id === asked.get("sample"));
  const filters = [...RULE_SETS, "move"];
  if (sample && matching.includes(sample)) show(sample);
  else if (sample || filters.some((name) => asked.has(name))) {
    for (const name of filters) form.elements[name].value = asked.get(name) ?? "";
    shown = sample ?? null;
    applyFilters();
  } else return;
  section.scrollIntoView();
}

fillFilters();
applyFilters();
followLink();

form.addEventListener("input", applyFilters);
form.addEventListener("submit", (event) => event.preventDefault());
form.elements.previous.addEventListener("click", () => step(-1));
form.elements.next.addEventListener("click", () => step(1));
window.addEventListener("hashchange", followLink);
window.addEventListener("keydown", (event) => {
  const elsewhere = event.target.closest("input, select, pre");
  if (elsewhere || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
