// The histogram: bars that stay, at the unscaled exponents, and the format's bands, which move with the scale.

const HEIGHT = 230, FLOOR = 190;

/** Kind, words, and the first exponent of a band and of the next one, before the scale. */
const bandsOf = (format, beyond = "overflow", end = format.largest + 1) => [
  ["flushed", "flushed to zero", -Infinity, format.flush + (format.flushes_powers_only ? 0 : 1)],
  ["subnormal", "subnormal", format.flush, format.below_normal + 1],
  ["normal", "normal", format.below_normal + 1, end],
  ["overflow", beyond, end, Infinity],
];

function drawBands(drawn, bands, scale, x) {
  for (const [kind, words, from, to] of bands) {
    const left = x(from - scale), width = x(to - scale) - left;
    if (width <= 0) continue;
    drawn.append(element("svg:rect", { class: `band ${kind}`, x: left, y: 0, width, height: FLOOR }));
    if (width < 6.5 * words.length) continue;
    const middle = { x: left + width / 2, y: 14, "text-anchor": "middle" };
    drawn.append(element("svg:text", { class: "word", ...middle }, words));
  }
}

function drawBars(drawn, counted, width, x) {
  const most = Math.max(...counted.all, 1);
  counted.all.forEach((count, index) => {
    const height = count ? Math.max((count / most) * (FLOOR - 24), 1) : 0;
    const left = x(counted.first + index) + 0.5;
    const shape = { x: left, y: FLOOR - height, width: Math.max(width - 1, 1), height };
    drawn.append(element("svg:rect", { class: "bar", ...shape }));
  });
}

function drawAxis(drawn, low, high, width, x) {
  drawn.append(element("svg:line", { class: "axis", x1: 0, x2: width, y1: FLOOR, y2: FLOOR }));
  const every = width < 600 ? 10 : 5;
  for (let tick = Math.ceil(low / every) * every; tick < high; tick += every) {
    if (x(tick) < 14 || x(tick) > width - 14) continue;
    drawn.append(element("svg:text", { class: "tick", x: x(tick), y: FLOOR + 15, "text-anchor": "middle" }, `${tick}`));
  }
}

/** Bars of `counted` over `bands` moved by `scale`, from exponent `low` to `high` at least; `words` below say what the
 * exponents are of. */
function drawExponents(counted, bands, { low: least, high: most, scale = 0, label, words }, width) {
  const low = Math.min(counted.nonzero ? counted.first - 1 : least, least);
  const high = Math.max(counted.nonzero ? counted.first + counted.all.length + 1 : most, most);
  const x = (exponent) => ((Math.min(Math.max(exponent, low), high) - low) / (high - low)) * width;
  const drawn = element("svg:svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  drawBands(drawn, bands, scale, x);
  drawBars(drawn, counted, width / (high - low), x);
  drawAxis(drawn, low, high, width, x);
  const aside = [`exact zeros: ${percent(counted.zeros, size(counted))}`];
  if (counted.nonfinite) aside.push(`infinite or NaN: ${percent(counted.nonfinite, size(counted))}`);
  drawn.append(element("svg:text", { class: "tick", x: 0, y: HEIGHT - 4 }, `${words}; ${aside.join("; ")}`));
  return drawn;
}

function drawHistogram(counted, format, scale, subject, width) {
  const label = `Exponents of ${subject}, and the bands of ${format.label} at loss scale 2^${scale}`;
  const words = "log2 of the unscaled magnitude";
  return drawExponents(counted, bandsOf(format), { low: -28, high: 18, scale, label, words }, width);
}

