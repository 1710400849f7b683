/* The sample browser: filters, steps, links. Whatever a model wrote enters as text, never as HTML. */

const samples = JSON.parse(document.getElementById("data").textContent);
const section = document.getElementById("samples");
const form = section.querySelector("form");
const list = section.querySelector(".list");
/** What every position was asked under: the name of its replies, and the class of its color. */
const conditions = [...section.querySelectorAll("article")].map((article) => ({
  name: article.dataset.condition,
  style: article.className,
}));
/** Of a diagnosis: controls are a group of their own. */
const GROUP = "group";
const CONTROL = "control";
const filters = [...form.querySelectorAll("select, input")].map(({ name }) => name);

let matching = [];
let shown = null;
let edited = null;

/** The name of an outcome; any other text stays as it is. */
const labels = JSON.parse(section.dataset.labels);
function labelOf(outcome) {
  return labels[outcome] ?? outcome;
}

function element(name, style, ...children) {
  const made = document.createElement(name);
  if (style) made.className = style;
  made.append(...children);
  return made;
}

function fillFilters() {
  const usual = samples.filter((sample) => sample.group !== CONTROL);
  for (const { name } of conditions) {
    fillFilter(form.elements[name], "any outcome", usual.map(({ replies }) => replies[name].outcome));
  }
  if (GROUP in form.elements) {
    fillFilter(form.elements[GROUP], "all except controls", samples.map(({ group }) => group));
  }
}

function fillFilter(select, any, values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  select.append(new Option(any, ""));
  for (const [value, count] of [...counts].sort((a, b) => b[1] - a[1])) {
    select.append(new Option(`${labelOf(value)} (${count})`, value));
  }
}

function inGroup(sample, wanted) {
  return wanted ? sample.group === wanted : sample.group !== CONTROL;
}

/** Whether a usual answer or a reply's contains the wanted text, or the item is about it. */
function matches(sample, wanted) {
  if (!wanted || isAbout(sample, wanted)) return true;
  const given = Object.values(sample.replies).map((reply) => reply.move);
  return [...sample.usual, ...given].some(
    (move) => move && `${move.uci} ${move.text}`.toLowerCase().includes(wanted),
  );
}

function applyFilters() {
  const wanted = form.elements.move.value.trim().toLowerCase();
  const chosen = conditions
    .map(({ name }) => [name, form.elements[name].value])
    .filter(([, outcome]) => outcome);
  matching = samples.filter(
    (sample) =>
      chosen.every(([name, outcome]) => sample.replies[name]?.outcome === outcome) &&
      inGroup(sample, form.elements[GROUP]?.value) &&
      matches(sample, wanted),
  );
  list.replaceChildren(...matching.map(listed));
  const [some, all] = [matching, samples].map(({ length }) => length.toLocaleString("en"));
  const only = asked().map(([name, value]) => `, ${name}: ${value}`).join("");
  section.querySelector(".on-paper").textContent =
    `${some} of ${all} samples${only}, each with its usual ${section.dataset.answer} and outcomes.`;
  show(matching.includes(shown) ? shown : matching[0] ?? null);
}

function listed(sample) {
  const link = element(
    "a", "",
    element("b", "", nameOf(sample)),
    ...(sample.group ? conditions.slice(0, 2) : conditions).map(({ name }) => {
      const { outcome } = sample.replies[name];
      return element("span", `is-${outcome}`, labelOf(outcome));
    }),
    ...(sample.group ? [element("i", "", sample.group)] : []),
  );
  link.href = address(sample);
  return element("li", "", link);
}

function show(sample) {
  shown = sample;
  const place = matching.indexOf(sample);
  form.querySelector("output").textContent = sample
    ? `${(place + 1).toLocaleString("en")} of ${matching.length.toLocaleString("en")}`
    : "no match";
  section.querySelector(".browser").hidden = !sample;
  if (!sample) return;
  drawItem(section, sample, conditions);
  describeItem(sample);
  for (const { name } of conditions) describeReply(name, sample.replies[name]);
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const item = list.children[place];
  item.firstChild.setAttribute("aria-current", "true");
  list.scrollTop = item.offsetTop - list.offsetTop - list.clientHeight / 2;
}

function describeItem(sample) {
  const identity = section.querySelector(".identity");
  const game = sample.game === undefined ? "" : `, game ${sample.game}`;
  identity.replaceChildren(`sample ${sample.id}${game}`);
  if (sample.source.startsWith("https://")) {
    const link = element("a", "", sample.source);
    link.href = sample.source;
    identity.append(", ", link);
  } else if (sample.source) identity.append(`, ${sample.source}`);
  section.querySelector(".legend .usual b").textContent =
    sample.usual.map((move) => move.text).join(", ") +
    (sample.group === CONTROL ? `, which stays ${section.dataset.allowed}` : "");
}

/** Write a text, which may be cut in the middle, in the pieces that are made of its parts. */
function fill(pre, text, pieces = (part) => [part]) {
  const [beginning, leftOut, end] = [text].flat();
  pre.replaceChildren(...pieces(beginning));
  if (leftOut) {
    const note = `… ${leftOut.toLocaleString("en")} characters omitted …`;
    pre.append(element("span", "left-out", note), ...pieces(end));
  }
  pre.classList.toggle("empty", !beginning);
}

function describeReply(name, reply) {
  const ours = `[data-condition="${name}"]`;
  const panel = section.querySelector(`article${ours}`);
  const key = section.querySelector(`.legend ${ours}`);
  panel.hidden = !reply;
  if (key) key.hidden = !reply;
  if (!reply) return;
  const asked = panel.querySelector(".asked q");
  if (asked) asked.textContent = reply.asked ?? "";
  const outcome = panel.querySelector(".outcome");
  outcome.textContent = labelOf(reply.outcome);
  outcome.className = `outcome is-${reply.outcome}`;
  fill(panel.querySelector("pre"), reply.text);
  const [tokensIn, tokensOut, thinking] = reply.tokens;
  const thoughts = thinking && !reply.thoughts ? `, ${thinking} of them reasoning` : "";
  const counted = tokensIn || tokensOut; // not by the bundled models
  const tokens = counted ? `, ${tokensIn} tokens in, ${tokensOut} out${thoughts}` : "";
  panel.querySelector(".remark").textContent = reply.error || `${reply.stop}${tokens}`;
  describeThoughts(panel, reply);
  if (!key) return;
  key.querySelector("b").textContent = reply.move
    ? reply.move.text === reply.move.uci
      ? reply.move.uci
      : `${reply.move.text} (${reply.move.uci})`
    : "none";
}

function step(by) {
  const next = matching[matching.indexOf(shown) + by];
  if (!next) return;
  show(next);
  history.replaceState(null, "", address(next));
}

/** Every filter that is set, and its value. */
function asked() {
  return filters.map((name) => [name, form.elements[name].value.trim()]).filter(([, value]) => value);
}

/** What links to the samples that match now, and to one of them. */
function address(sample) {
  const parts = new URLSearchParams(asked());
  if (sample) parts.set("sample", sample.id);
  return `#${parts}`;
}

/** Filter, and say so in the address. A choice is a step of the history, and so is a word typed. */
function choose({ target }) {
  applyFilters();
  const typing = target === edited && target.type === "search";
  history[typing ? "replaceState" : "pushState"](null, "", address());
  edited = target;
}

/** Follow the address: to one sample, or to those with given outcomes or moves. */
function followLink() {
  const wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const sample = samples.find(({ id }) => id === wanted.sample);
  const leadsHere = sample || filters.some((name) => name in wanted);
  if (location.hash && !leadsHere) return; // to another section
  edited = null;
  const needed = sample?.group === CONTROL ? { [GROUP]: CONTROL } : {};
  setFilters({ ...wanted, ...needed });
  if (sample && !matching.includes(sample)) setFilters(needed);
  show(sample ?? matching[0] ?? null);
  if (leadsHere) section.scrollIntoView();
}

function setFilters(wanted) {
  const before = address();
  for (const name of filters) {
    const field = form.elements[name];
    field.value = wanted[name] ?? "";
    if (field.selectedIndex < 0) field.value = ""; // no sample of this run has that outcome
  }
  if (address() !== before) applyFilters();
}

fillFilters();
applyFilters();
followLink();

form.addEventListener("input", choose);
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
