"use strict";

/* Draws a position: squares, pieces, the last move, and an arrow for each move that matters. */

const SQUARE = 45;
const PIECES = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The upper left corner of a square such as "e4", White at the bottom. */
function corner(square) {
  return { x: (square.charCodeAt(0) - 97) * SQUARE, y: (8 - Number(square[1])) * SQUARE };
}

function drawnSquares(last) {
  const marked = last ? [last.slice(0, 2), last.slice(2, 4)] : [];
  const drawn = [];
  for (let index = 0; index < 64; index++) {
    const file = index % 8;
    const rank = 8 - Math.floor(index / 8);
    const name = "abcdefgh"[file] + rank;
    const shade = (file + rank) % 2 ? "dark" : "light";
    const style = marked.includes(name) ? `${shade} last` : shade;
    const place = corner(name);
    drawn.push(svg("rect", { ...place, width: SQUARE, height: SQUARE, class: style }));
    if (file === 0) drawn.push(svg("text", { x: place.x + 2, y: place.y + 9 }, String(rank)));
    if (rank === 1) drawn.push(svg("text", { x: place.x + 38, y: place.y + 43 }, name[0]));
  }
  return drawn;
}

function drawnPieces(fen) {
  const drawn = [];
  fen.split(" ")[0].split("/").forEach((row, fromTop) => {
    let file = 0;
    for (const symbol of row) {
      if (symbol >= "1" && symbol <= "8") {
        file += Number(symbol);
        continue;
      }
      const color = symbol === symbol.toLowerCase() ? "black" : "white";
      const href = `#${color}-${PIECES[symbol.toLowerCase()]}`;
      const transform = `translate(${file * SQUARE} ${fromTop * SQUARE})`;
      drawn.push(svg("use", { href, transform }));
      file += 1;
    }
  });
  return drawn;
}

function way(uci) {
  const [tail, head] = [corner(uci.slice(0, 2)), corner(uci.slice(2, 4))];
  return [head.x - tail.x, head.y - tail.y];
}

/** Whether two moves leave one square in one direction, so that their arrows would overlap. */
function sameWay(one, other) {
  const [[dx, dy], [ex, ey]] = [way(one), way(other)];
  return one.slice(0, 2) === other.slice(0, 2) && dx * ey === dy * ex && dx * ex + dy * ey > 0;
}

/** An arrow along a move; aside shifts it to one side, for arrows that would overlap. */
function arrow(uci, style, thick, aside) {
  const tail = corner(uci.slice(0, 2));
  const [dx, dy] = way(uci);
  const length = Math.hypot(dx, dy);
  const along = { x: dx / length, y: dy / length };
  const center = SQUARE / 2;
  const point = (distance, sideways) =>
    [
      tail.x + center + along.x * distance - along.y * (sideways + aside),
      tail.y + center + along.y * distance + along.x * (sideways + aside),
    ].map((number) => number.toFixed(1)).join(",");
  const tip = length - 3;
  const neck = tip - thick * 0.8 - 7;
  const half = thick / 2;
  const outline = [
    point(10, -half), point(neck, -half), point(neck, -half - 5), point(tip, 0),
    point(neck, half + 5), point(neck, half), point(10, half),
  ];
  return svg("polygon", { points: outline.join(" "), class: `arrow ${style}` });
}

/** The move of a reply, if it goes from square to square; a piece dropped on the board does not. */
function drawable(reply) {
  return reply?.move?.uci.match(/^[a-h][1-8][a-h][1-8]/)?.[0];
}

/** An arrow for each reply that is a move; those that would overlap lie side by side. */
function drawnReplies(sample, conditions) {
  const moves = conditions
    .map(({ name, style }) => ({ style, uci: drawable(sample.replies[name]) }))
    .filter(({ uci }) => uci);
  return moves.map((move) => {
    const together = moves.filter(({ uci }) => sameWay(uci, move.uci));
    const place = together.indexOf(move) - (together.length - 1) / 2;
    return arrow(move.uci, move.style, 5, 8 * place);
  });
}

/** Show the board of a sample, and the game so far. */
function drawItem(section, sample, conditions) {
  drawBoard(section.querySelector(".board"), sample, conditions);
  const toMove = sample.fen.split(" ")[1] === "w" ? "White" : "Black";
  const game = sample.moves || "The initial position";
  section.querySelector(".game").replaceChildren(
    game.replaceAll(". ", ".\u00a0").replaceAll("-", "\u2011"), element("span", "to-move", `${toMove} to move`),
  );
}

/** What lists call a sample. */
function nameOf(sample) {
  return sample.usual.length > 1 ? `${sample.usual.length} moves` : sample.usual[0].text;
}

/** Whether the game begins with the wanted moves. */
function isAbout(sample, wanted) {
  return wanted.startsWith("1.") && sample.moves.toLowerCase().startsWith(wanted);
}

function drawBoard(board, sample, conditions) {
  const toMove = sample.fen.split(" ")[1] === "w" ? "White" : "Black";
  board.setAttribute("aria-label", `${toMove} to move. ${sample.fen}`);
  const thick = sample.usual.length > 1 ? 8 : 12;
  const usual = sample.usual.map((move) => arrow(move.uci, "usual", thick, 0));
  board.replaceChildren(
    ...drawnSquares(sample.last_move),
    svg("g", { class: "usuals" }, ...usual),
    ...drawnPieces(sample.fen),
    ...drawnReplies(sample, conditions),
  );
}
