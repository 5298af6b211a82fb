// Tables of the explorer of formats: all formats, all tensors, and the exact counts of the choice.

const COLUMNS = [
  ["error", "error dB", decibels, loss],
  ...["flushed", "subnormal", "clipped", "overflow"].map((name) => [
    name, name, (counts) => percent(counts[name], counts.nonzero),
    (counts) => counts[name] / Math.max(counts.nonzero, 1), true]),
  ["zero_blocks", "zero blocks", (counts) => percent(counts.zero_blocks, counts.blocks),
    (counts) => counts.zero_blocks / Math.max(counts.blocks, 1)],
  ["blocks_at_risk", "at risk", (counts) => percent(counts.blocks_at_risk, counts.blocks),
    (counts) => counts.blocks_at_risk / Math.max(counts.blocks, 1)],
];

/** The cells of COLUMNS; the exact count is what the pointer shows. */
function countCells(counts) {
  return COLUMNS.map(([key, , words, weight, isShare]) => {
    const title = key === "error" ? (counts.error === null ? null : `relative error ${counts.error}`) : number(counts[key]);
    const cell = element("td", { class: `number${isShare ? ` share ${key}` : ""}`, title }, words(counts));
    if (isShare) cell.style.setProperty("--share", weight(counts));
    return cell;
  });
}

/** A table whose rows, {name, words, fixed: cells' words, counts}, are chosen by their first cell and sorted by their
 * headings. `sorts`: further keys. */
function makeChoiceTable(kind, fixed, caption, take) {
  let sort = "";
  const heads = {};
  const columns = [[kind, kind], ...fixed, ...COLUMNS];
  const body = element("tbody");
  let redraw = () => {};
  for (const [key, words] of columns) {
    const choose = () => { sort = sort === key ? "" : key; redraw(); };
    heads[key] = element("th", { scope: "col", class: key === kind ? null : "number" }, button(words, choose));
  }
  const weightOf = (key) => {
    const place = fixed.findIndex(([name]) => name === key);
    if (place >= 0) return ({ weights }) => weights[place];
    const column = COLUMNS.find(([name]) => name === key);
    return column ? ({ counts }) => -column[3](counts) : ({ place: order }) => order;
  };
  const show = (rows, chosen) => {
    redraw = () => show(rows, chosen);
    const weight = weightOf(sort);
    const sorted = [...rows].sort((one, other) => weight(one) - weight(other) || one.place - other.place);
    showSort(heads, sort);
    body.replaceChildren(...sorted.map(({ name, words, cells, counts }) => {
      const label = button(words, () => take(name), { "aria-pressed": name === chosen });
      return element("tr", { class: name === chosen ? "chosen" : null }, element("th", { scope: "row" }, label),
        ...cells.map((text) => element("td", { class: "number" }, text)), ...countCells(counts));
    }));
  };
  const table = element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...Object.values(heads))), body);
  return { box: element("div", { class: `rows ${kind}s`, tabindex: 0, role: "region", "aria-label": `${kind}s` }, table), show };
}

/** Words, counter, and the counter that it is a share of. */
const ELEMENTS = [["elements", "elements"], ["exact zeros", "zeros", "elements"],
  ["infinite or NaN", "nonfinite", "elements"], ["flushed to zero", "flushed", "nonzero"],
  ["by a scale of 0", "flushed_by_scale", "nonzero"], ["subnormal", "subnormal", "nonzero"],
  ["clipped", "clipped", "nonzero"], ["overflow", "overflow", "nonzero"], ["lost: become NaN", "lost", "nonzero"]];
const BLOCKS = [["blocks", "blocks"], ["zeros only", "zero_blocks", "blocks"],
  ["with a clipped element", "clipped_blocks", "blocks"], ["with an overflow", "overflow_blocks", "blocks"],
  ["with infinity or NaN", "nonfinite_blocks", "blocks"], ["at risk", "blocks_at_risk", "blocks"]];
const SCALES = [["least scale", "least_scales", "blocks"], ["largest scale", "largest_scales", "blocks"],
  ["scale 0", "zero_scales", "blocks"], ["scale NaN", "nan_scales", "blocks"]];

function countList(title, lines, counts) {
  return element("table", { class: "counts" }, element("caption", {}, title), element("tbody", {},
    ...lines.map(([words, key, whole]) => element("tr", {}, element("th", { scope: "row" }, words),
      element("td", { class: "number", "data-counter": key }, number(counts[key])),
      element("td", { class: "number" }, whole ? percent(counts[key], counts[whole]) : "")))));
}

const countLists = (counts, format) => [countList("Elements", ELEMENTS, counts),
  ...(format.scale ? [countList("Blocks", BLOCKS, counts), countList("Scales", SCALES, counts)] : [])];
