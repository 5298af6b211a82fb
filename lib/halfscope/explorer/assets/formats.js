// The explorer of formats: a choice of format, scale rule and tensor, and what was counted for it.

/** The state with whatever `data` do not have put right. */
function validChoice(state, data) {
  const now = { ...state };
  if (!data.formats.some(({ name }) => name === now.format)) now.format = data.start;
  if (!data.tensors.some(({ name }) => name === now.tensor)) now.tensor = "";
  return now;
}

function makeFormatControls(id, data, change) {
  const families = [...new Set(data.formats.map(({ family }) => family))];
  const membersOf = (family) => data.formats.filter((format) => format.family === family);
  const chosen = (now) => data.formats.find(({ name }) => name === now.format);
  let current = null;
  const toFamily = (family) => {
    const members = membersOf(family);
    change({ format: (members.find(({ rule }) => rule === current.rule) ?? members[0]).name });
  };
  const formats = makeChoice(`${id}-format`, "Format", families.map((name) => [name, name]), toFamily);
  const rules = element("div");
  const select = element("select", { onchange: () => change({ tensor: select.value }) },
    element("option", { value: "" }, "all tensors"),
    ...data.tensors.map(({ name, label }) => element("option", { value: name }, label)));
  const note = element("p", { class: "note" });
  const box = element("div", { class: "controls" }, formats, rules, note,
    element("label", {}, element("span", { class: "soft" }, "Tensor "), select));
  const show = (now) => {
    const before = current;
    current = chosen(now);
    check(formats, current.family);
    const members = membersOf(current.family);
    if (before?.family !== current.family) {
      const options = members.map(({ name, rule }) => [name, rule]);
      const choice = makeChoice(`${id}-rule`, "Scale rule", options, (format) => change({ format }));
      rules.replaceChildren(...(members.length > 1 ? [choice] : []));
    }
    if (members.length > 1) check(rules, now.format);
    const rule = current.rule ? `${current.rule}: ${current.summary}.` :
      "No blocks: elements are cast as they are, or by one power of two for the tensor.";
    note.textContent = `${rule} Elements of ${current.element.label}: at most ${current.largest}.`;
    select.value = now.tensor;
  };
  return { box, show };
}

const inBlocks = (format) => {
  if (!format.scale) return "";
  const article = format.scale.startsWith("u") ? "a" : "an";
  return `, blocks of ${format.block} with ${article} ${format.scale.toUpperCase()} scale${format.has_tensor_scale ?
    " and an FP32 scale for the tensor" : ""}`;
};

function sentenceOnFormat(counts, format, subject) {
  const share = (key) => percent(counts[key], counts.nonzero);
  const error = counts.error === 0 ? "makes no error on" : counts.error === null ? "loses finite elements of" :
    `errs by ${(100 * counts.error).toPrecision(3)} % (${decibels(counts)} dB) on`;
  const risk = format.scale ? ` ${number(counts.blocks_at_risk)} of ${number(counts.blocks)} blocks are at risk.` : "";
  return `${format.name}, ${format.bits.toFixed(2)} bits per element${inBlocks(format)}, ${error} ${subject}: ` +
    `${share("flushed")} of ${number(counts.nonzero)} non-zero elements are flushed to zero, ${share("subnormal")} ` +
    `subnormal, ${share("clipped")} clipped, ${share("overflow")} overflow.${risk}`;
}

/** Draws the explorer of formats as `explore` draws that of loss scales; the state: format, tensor. */
export function exploreFormats(root, data, { onState = () => {} } = {}) {
  const id = `explorer${made++}`;
  data.tensors.forEach((tensor) => (tensor.label = visible(tensor.name)));
  const initial = { format: data.start, tensor: "" };
  let now = initial, width = 0;
  const change = (part) => {
    now = validChoice({ ...now, ...part }, data);
    draw();
    onState(Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== initial[key])));
  };
  const controls = makeFormatControls(id, data, change);
  const sentence = element("p", { class: "sentence", "aria-live": "polite" });
  const exponents = element("div", { class: "histogram" });
  const codes = element("div", { class: "codes" });
  const lists = element("div", { class: "lists" });
  const formats = makeChoiceTable("format", [["bits", "bits"], ["worst", "worst tensor dB"]],
    "Formats and rules; shares of the non-zero elements and of the blocks.", (format) => change({ format }));
  const tensors = makeChoiceTable("tensor", [["elements", "elements"]], "Tensors in the chosen format.",
    (tensor) => change({ tensor: tensor === now.tensor ? "" : tensor }));
  const room = () => Math.min(Math.max(root.clientWidth, 320), 900); // pixels, so that letters keep their size
  const families = [...new Set(data.formats.map(({ family }) => family))];
  const counted = (cell) => countsOf(data.counters, cell);
  const worst = data.formats.map((_, index) =>
    data.tensors.map(({ cells }) => counted(cells[index])).reduce((most, next) => (loss(next) > loss(most) ? next : most), { error: 0 }));

  function draw() {
    width = room();
    const index = data.formats.findIndex(({ name }) => name === now.format), format = data.formats[index];
    const chosen = data.tensors.find(({ name }) => name === now.tensor);
    const cells = chosen?.cells ?? data.sums, subject = chosen?.label ?? "all tensors";
    const counts = counted(cells[index]);
    controls.show(now);
    sentence.textContent = sentenceOnFormat(counts, format, subject);
    exponents.replaceChildren(drawRelativeExponents(counts, format, subject, width));
    codes.replaceChildren(format.scale ? drawCodes(counts, data.scales[format.scale], subject, width) :
      element("p", { class: "note" }, counts.scale === null ? "" : `Scale of the tensor: 2^${counts.scale}.`));
    lists.replaceChildren(...countLists(counts, format));
    formats.show(data.formats.map(({ name, family, bits }, at) => ({
      name, words: name, place: families.indexOf(family) * data.formats.length + at,
      cells: [bits.toFixed(2), decibels(worst[at])], weights: [bits, -loss(worst[at])], counts: counted(cells[at]),
    })), now.format);
    tensors.show(data.tensors.map(({ name, label, cells: own }, place) => {
      const found = counted(own[index]);
      return { name, words: label, place, cells: [number(found.elements)], weights: [-found.elements], counts: found };
    }), now.tensor);
  }
  root.replaceChildren(controls.box, sentence, exponents, codes, lists, formats.box, tensors.box);
  draw();
  new ResizeObserver(() => room() !== width && draw()).observe(root);
  return (state) => {
    now = validChoice({ ...initial, ...state }, data);
    draw();
  };
}
