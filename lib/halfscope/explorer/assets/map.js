// The map: flushed share by tensor, nearest the loss first, and step.

const ROW = 13;
const SHADES = [[255, 255, 204], [254, 204, 92], [240, 59, 32], [128, 0, 38]];
const OVERFLOW = "#0072b2";

function shade(share) {
  const at = Math.min(share, 1) * (SHADES.length - 1);
  const from = Math.min(Math.floor(at), SHADES.length - 2);
  const mixed = SHADES[from].map((value, i) => Math.round(value + (SHADES[from + 1][i] - value) * (at - from)));
  return `rgb(${mixed.join(" ")})`;
}

function shortened(label, letters) {
  if (label.length <= letters) return label;
  return `${label.slice(0, letters / 2 - 1)}\u2026${label.slice(-letters / 2)}`;
}

/** Strokes on a dark ground: nothing but exact zeros arrived. */
const hatching = (id) =>
  element("svg:defs", {},
    element("svg:pattern", { id, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      element("svg:rect", { width: 4, height: 4, fill: "#3a3a3a" }),
      element("svg:rect", { width: 1.5, height: 4, fill: "#bbb" })));

function inWords(found) {
  if (!found.nonzero) return "exact zeros only";
  return `flushed ${between(found.flushed, found.nonzero)}, overflow ${between(found.overflow, found.nonzero)}`;
}

const legend = () =>
  element("p", { class: "note" },
    element("i", { class: "shades" }), " 0 to 100 % of the non-zero elements flushed; ",
    element("i", { class: "key overflow" }), " something overflows; ",
    element("i", { class: "key zeros" }), " exact zeros only. Rows: tensors; columns: steps.");

/** cast: from counters to what whatIf finds. */
function makeMap(id, data, tensors) {
  const cells = new Map(tensors.map((tensor) => [tensor, tensor.cells.map((cell) => cell && counters([cell]))]));
  const readout = element("p", { class: "note readout" });
  const drawn = element("svg:svg", { role: "img" });
  const text = (words, x, y, anchor) => element("svg:text", { class: "tick", x, y, "text-anchor": anchor }, words);
  const show = (shown, cast, title, room) => {
    const narrow = room < 600;
    const names = narrow ? 110 : 150, height = shown.length * ROW, width = (room - names) / data.steps.length;
    const fillOf = (found) => {
      if (!found.nonzero) return `url(#${id})`;
      return found.overflow[1] ? OVERFLOW : shade(found.flushed[1] / found.nonzero);
    };
    const parts = [hatching(id)];
    shown.forEach((tensor, line) => {
      parts.push(text(shortened(tensor.label, narrow ? 18 : 24), names - 4, line * ROW + 10, "end"));
      cells.get(tensor).forEach((cell, column) => {
        if (!cell) return;
        const found = cast(cell);
        const say = () => (readout.textContent = `${tensor.label}, step ${data.steps[column]}: ${inWords(found)}`);
        parts.push(element("svg:rect", {
          x: names + column * width, y: line * ROW, width: width + 0.3, height: ROW - 1, fill: fillOf(found),
          onpointerenter: say,
        }));
      });
    });
    const every = Math.ceil(data.steps.length / (narrow ? 4 : 8));
    data.steps.forEach((step, column) => {
      if (column % every === 0) parts.push(text(`${step}`, names + (column + 0.5) * width, height + 13, "middle"));
    });
    drawn.setAttribute("viewBox", `0 0 ${room} ${height + 18}`);
    drawn.setAttribute("aria-label", title);
    drawn.replaceChildren(...parts);
  };
  return { box: element("div", { class: "map" }, drawn, legend(), readout), show };
}

