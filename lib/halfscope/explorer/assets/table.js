// The table: a row per tensor. A click on a heading sorts by it, one on a name shows that tensor's histogram.

/** Harm, by which rows are sorted: any overflow, which makes a scaler skip the step, then the largest share. */
const harm = ({ nonzero, flushed, overflow }) =>
  (overflow[1] > 0 ? 2 : 0) + Math.max(flushed[1], overflow[1]) / Math.max(nonzero, 1);

const SORTS = {
  worst: ({ found }) => -harm(found),
  tensor: ({ tensor }) => tensor.place,
  role: ({ tensor }) => tensor.role,
  elements: ({ tensor }) => -size(tensor.sum),
  fits: ({ tensor }) => (tensor.fits ? -tensor.fits[0] : Infinity),
};
for (const name of OUTCOMES) SORTS[name] = ({ found }) => -found[name][1] / Math.max(found.nonzero, 1);
const ASCENDING = ["tensor", "role"];

function scalesThatFit({ sum, fits }) {
  if (!sum.nonzero) return "any";
  if (!fits) return "";
  return fits[0] > fits[1] ? "none" : `2^${fits[0]} to 2^${fits[1]}`;
}

function makeRow(tensor, columns, change) {
  const fixed = {
    role: tensor.role.replace(/_gradient$/, "").replace("activation", "output"),
    elements: size(tensor.sum).toLocaleString("en"),
    fits: scalesThatFit(tensor),
  };
  const name = button(tensor.label, () => change({ tensor: row.classList.contains("chosen") ? "" : tensor.name }));
  const cells = {};
  for (const [key] of columns) {
    if (key === "tensor") cells[key] = element("th", { scope: "row" }, name);
    else cells[key] = element("td", { class: "number" }, fixed[key] ?? "");
  }
  const row = element("tr", {}, ...Object.values(cells));
  return { row, cells, name };
}

function showRow({ row, cells, name }, { tensor, found }, chosen) {
  for (const outcome of OUTCOMES) {
    const cell = cells[outcome], [, most] = found[outcome];
    cell.textContent = found.nonzero ? between(found[outcome], found.nonzero) : "\u2013";
    cell.style.setProperty("--share", most / Math.max(found.nonzero, 1));
    cell.className = `number share ${outcome}${most ? " some" : ""}`;
  }
  row.classList.toggle("chosen", chosen);
  row.classList.toggle("zeros", !found.nonzero && tensor.sum.zeros > 0);
  name.setAttribute("aria-pressed", chosen);
  return row;
}

function showSort(heads, sort) {
  for (const [key, head] of Object.entries(heads)) {
    if (key !== sort) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", ASCENDING.includes(key) ? "ascending" : "descending");
  }
}

function makeTable(tensors, withRole, change) {
  const columns = [["tensor", "tensor"], ["role", "of"], ["elements", "elements"]];
  if (!withRole) columns.splice(1, 1);
  columns.push(...OUTCOMES.map((name) => [name, name]), ["fits", "fits S"]);
  const heads = {};
  for (const [key, words] of columns) {
    const sort = () => change({ sort: heads[key].hasAttribute("aria-sort") ? "worst" : key });
    heads[key] = element("th", { scope: "col", class: key === "tensor" ? null : "number" }, button(words, sort));
  }
  const rows = new Map(tensors.map((tensor) => [tensor, makeRow(tensor, columns, change)]));
  const body = element("tbody");
  const show = (found, now) => {
    const key = SORTS[now.sort] ?? SORTS.worst;
    const keyed = found.map((entry) => [key(entry), entry]);
    keyed.sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
    showSort(heads, now.sort);
    const showEntry = ([, entry]) => showRow(rows.get(entry.tensor), entry, entry.tensor.name === now.tensor);
    body.replaceChildren(...keyed.map(showEntry));
  };
  const caption = "Shares of the non-zero elements; worst first unless a heading is chosen.";
  const table = element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...Object.values(heads))), body);
  const box = element("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "tensors" }, table);
  return { box, show };
}

