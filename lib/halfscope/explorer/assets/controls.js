// The slider with its window and marks, and the choice of format and role.

const FEW = 8; // marks whose buttons are shown at once
const within = (scale) => Math.min(Math.max(scale, LOWEST), HIGHEST);
/** A place on the slider: half a thumb is left free at both ends. */
const place = (scale) => `calc(.5rem + ${(within(scale) - LOWEST) / (HIGHEST - LOWEST)} * (100% - 1rem))`;

/** The arms' names by the log2 of the scale at which they ended, ascending. */
function endings(marks) {
  const ends = new Map();
  for (const { label, log2 } of marks) ends.set(log2, [...(ends.get(log2) ?? []), visible(label)]);
  return [...ends].sort(([one], [other]) => one - other);
}

function makeTrack(range, advice, ends) {
  const track = element("div", { class: "track" }, range);
  if (advice.window) {
    const [low, high] = advice.window;
    const style = `left: ${place(low)}; width: calc(${place(high)} - ${place(low)})`;
    track.prepend(element("div", { class: "window", style, title: `every tensor fits from 2^${low} to 2^${high}` }));
  }
  track.append(...ends.map(([scale]) => element("i", { class: "tick", style: `left: ${place(scale)}` })));
  return track;
}

/** Buttons that bring the slider to the advised scales and to those of the arms. */
function makeJumps(data, ends, change) {
  const { advice } = data;
  const jump = (words, scale, kind) => {
    const shown = Number.isInteger(scale) ? scale : scale.toFixed(1);
    return button(`${words} 2^${shown}`, () => change({ scale: Math.round(scale) }), { class: kind });
  };
  const advised = [];
  if (advice.window) advised.push(["enough from", advice.window[0]], ["overflow beyond", advice.window[1]]);
  if (advice.use !== null) advised.push(["use", advice.use]);
  const marks = ends.map(([scale, arms]) => jump(`${arms.join(", ")}:`, scale, "mark"));
  const buttons = advised.map(([words, scale]) => jump(words, scale, "advised"));
  if (marks.length <= FEW) return element("div", { class: "jumps" }, ...buttons, ...marks);
  const words = element("summary", {}, `scales of ${data.marks.length} arms`);
  return element("div", { class: "jumps" }, ...buttons,
    element("details", {}, words, element("div", { class: "jumps" }, ...marks)));
}

/** Radio buttons; options: [value, words] each. */
function makeChoice(name, legend, options, choose) {
  const labels = options.map(([value, words]) => {
    const input = element("input", { type: "radio", name, value, onchange: () => choose(value) });
    return element("label", {}, input, ` ${words}`);
  });
  return element("fieldset", {}, element("legend", {}, legend), ...labels);
}

function check(choice, value) {
  for (const input of choice.querySelectorAll("input")) input.checked = input.value === value;
}

function makeControls(id, data, roles, change) {
  const range = element("input", {
    type: "range", min: LOWEST, max: HIGHEST, step: 1, id: `${id}-scale`, "aria-label": "log2 of the loss scale",
    oninput: () => change({ scale: range.value }),
  });
  const output = element("output", { for: range.id });
  const ends = endings(data.marks);
  const named = data.formats.map(({ name, label }) => [name, label]);
  const formats = makeChoice(`${id}-format`, "Format", named, (format) => change({ format }));
  const chosen = [["", "all"], ...roles.map((role) => [role, roleName(role)])];
  const kinds = makeChoice(`${id}-role`, "Tensors", chosen, (role) => change({ role }));
  const note = element("p", { class: "note" });
  const box = element("div", { class: "controls" },
    element("label", { class: "scale", for: range.id }, "Loss scale ", output),
    makeTrack(range, data.advice, ends), makeJumps(data, ends, change),
    formats, roles.length > 1 ? kinds : null, note);
  const own = data.formats.find(({ name }) => name === data.format).label;
  const show = (now, format) => {
    range.value = now.scale;
    range.setAttribute("aria-valuetext", `2 to the power of ${now.scale}`);
    const number = power(now.scale);
    output.textContent = `S = 2^${now.scale}${number.startsWith("2^") ? "" : ` = ${number}`}`;
    check(formats, now.format);
    check(kinds, now.role);
    note.textContent = format.label === own ? "" :
      `Counted at the edges of ${own}: at those of ${format.label} some shares lie between two bounds.`;
  };
  return { box, show };
}

