// The explorer itself: its state, and what a change of it draws anew.

let made = 0; // explorers on this page: their controls need names of their own

/** The state with whatever `data` do not have put right. */
function valid(state, data) {
  const now = { ...state };
  now.scale = within(Math.round(Number(now.scale)) || 0);
  if (!data.formats.some(({ name }) => name === now.format)) now.format = data.format;
  if (!data.tensors.some(({ role }) => role === now.role)) now.role = "";
  if (!data.tensors.some(({ name }) => name === now.tensor)) now.tensor = "";
  return now;
}

function sentenceOn(found, format, now, subject) {
  const share = (outcome) => between(found[outcome], found.nonzero);
  return `At S = ${power(now.scale)}, ${format.label} flushes ${share("flushed")} of the ` +
    `${found.nonzero.toLocaleString("en")} non-zero elements of ${subject} to zero, makes ${share("subnormal")} ` +
    `subnormal, and ${share("overflow")} overflow.`;
}

/** Draws the explorer of `data` into `root`, in place of what it holds; `onState` hears of what differs from the state
 * at the start: scale (log2), format, role, tensor, sort. Returns a function that takes such a state. */
export function explore(root, data, { onState = () => {} } = {}) {
  const id = `explorer${made++}`;
  const own = data.formats.find(({ name }) => name === data.format);
  const tensors = data.tensors.map((tensor, place) =>
    ({ ...tensor, place, label: visible(tensor.name), sum: counters(tensor.cells) }));
  const roles = [...new Set(tensors.map(({ role }) => role))];
  const initial = { scale: data.start, format: data.format, role: "", tensor: "", sort: "worst" };
  let now = initial, width = 0;

  const change = (part) => {
    now = valid({ ...now, ...part }, data);
    draw();
    onState(Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== initial[key])));
  };
  const controls = makeControls(id, data, roles, change);
  const sentence = element("p", { class: "sentence", "aria-live": "polite" });
  const histogram = element("div", { class: "histogram" });
  const table = makeTable(tensors, roles.length > 1, change);
  const map = data.steps.length > 1 ? makeMap(`${id}-zeros`, data, tensors) : null;
  const room = () => Math.min(Math.max(root.clientWidth, 320), 900); // pixels, so that letters keep their size

  function draw() {
    width = room();
    const format = data.formats.find(({ name }) => name === now.format);
    const cast = (counted) => whatIf(counted, own, format, now.scale);
    const shown = tensors.filter(({ role }) => !now.role || role === now.role);
    const chosen = shown.find(({ name }) => name === now.tensor);
    const bars = counters((chosen ? [chosen] : shown).flatMap(({ cells }) => cells));
    const subject = chosen?.label ?? (now.role ? roleName(now.role) : "all tensors");
    controls.show(now, format);
    sentence.textContent = sentenceOn(cast(bars), format, now, subject);
    histogram.replaceChildren(drawHistogram(bars, format, now.scale, subject, width));
    table.show(shown.map((tensor) => ({ tensor, found: cast(tensor.sum) })), now);
    map?.show(shown, cast, `Share flushed by ${format.label} at 2^${now.scale}, by tensor and step`, width);
  }
  root.replaceChildren(controls.box, sentence, histogram, table.box, ...(map ? [map.box] : []));
  draw();
  new ResizeObserver(() => room() !== width && draw()).observe(root);
  return (state) => {
    now = valid({ ...initial, ...state }, data);
    draw();
  };
}

const exploreAny = (root, data, options) => (data.counters ? exploreFormats : explore)(root, data, options);

/** Draws every explorer of a page. The address keeps the state of the one that changed last:
 * #ID?scale=6&format=bf16. */
export function start(page = document) {
  const explorers = new Map();
  for (const root of page.querySelectorAll(".explorer")) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const name = encodeURIComponent(root.id);
    const onState = (state) => history.replaceState(null, "", `#${name}?${new URLSearchParams(state)}`);
    explorers.set(name, { root, take: exploreAny(root, data, { onState }) });
  }
  const follow = () => {
    const [name, query] = location.hash.slice(1).split("?");
    const found = explorers.get(name);
    if (!found || query === undefined) return;
    found.take(Object.fromEntries(new URLSearchParams(query)));
    found.root.scrollIntoView();
  };
  follow();
  addEventListener("hashchange", follow);
}

/** The entry of a notebook's widget (anywidget): `data` is the text that a page's script has. */
export function render({ model, el }) {
  const draw = () => exploreAny(el, JSON.parse(model.get("data")));
  el.classList.add("explorer");
  model.on("change:data", draw);
  draw();
}
export default { render };
