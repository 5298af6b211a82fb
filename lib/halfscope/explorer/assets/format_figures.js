// Figures of the chosen format: exponents over the blocks' scales, and the codes of the scales.

function drawRelativeExponents(counts, format, subject, width) {
  const { nonzero, zeros, nonfinite } = counts;
  const counted = { ...barsOf(counts.exponents), nonzero, zeros, nonfinite };
  const label = `Exponents of ${subject} over the scale, and the bands of ${format.element.label}`;
  const words = `log2 of the magnitude over the ${format.scale ? "block" : "tensor"}'s scale`;
  const bands = bandsOf(format.element, "clipped", format.largest_log2);
  const least = format.element.flush - 4, most = format.element.largest + 4;
  return drawExponents(counted, bands, { low: least, high: most, label, words }, width);
}

const CODES_HEIGHT = 158, CODES_FLOOR = 112, FAR = 24;

/** A bar for each code from the least to the largest that occurs; what it stands for below, where there is room. Code 0,
 * which blocks of zeros have, is told in words where the others lie far off. */
function drawCodes(counts, scales, subject, width) {
  const [least, blocks, next] = counts.codes;
  const isFar = least === 0 && next > FAR;
  const { first, all } = barsOf(isFar ? counts.codes.slice(2) : counts.codes);
  const low = first - 1, span = Math.max(all.length + 2, 12), bar = Math.min(width / span, 48);
  const most = Math.max(...all, 1);
  const drawn = element("svg:svg", { viewBox: `0 0 ${width} ${CODES_HEIGHT}`, role: "img",
    "aria-label": `Scales of the blocks of ${subject} by their code` });
  const every = Math.ceil(Math.max(64 / bar, 1));
  all.forEach((count, index) => {
    const code = first + index, x = (code - low) * bar;
    const height = count ? Math.max((count / most) * (CODES_FLOOR - 10), 1) : 0;
    const words = `${scales.is_binade ? "exponent field" : "code"} ${code}, ${scales.labels[code]}: ${number(count)} blocks`;
    drawn.append(element("svg:rect", { class: "bar code", x: x + 0.5, y: CODES_FLOOR - height,
      width: Math.max(bar - 1, 1), height }, element("svg:title", {}, words)));
    if (index % every !== 0 || x + bar / 2 < 24 || x + bar / 2 > width - 24) return;
    const middle = { class: "tick", x: x + bar / 2, "text-anchor": "middle" };
    drawn.append(element("svg:text", { ...middle, y: CODES_FLOOR + 13 }, `${code}`),
      element("svg:text", { ...middle, y: CODES_FLOOR + 25 }, scales.labels[code]));
  });
  drawn.append(element("svg:line", { class: "axis", x1: 0, x2: width, y1: CODES_FLOOR, y2: CODES_FLOOR }));
  const kind = scales.is_binade ? "exponent field of the FP32 scale" : "code of the scale, and its number";
  const aside = isFar ? `; code 0, ${scales.labels[0]}: ${number(blocks)} blocks` : "";
  drawn.append(element("svg:text", { class: "tick", x: 0, y: CODES_HEIGHT - 2 }, kind + aside));
  return drawn;
}
