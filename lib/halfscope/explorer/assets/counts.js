// The loss-scale explorer: effects of a cast on recorded tensors at any power-of-two loss scale, from exact counts.
// CMake joins the files of this folder into one module, in the order of explorer_assets.cpp.in.

export const LOWEST = -10, HIGHEST = 32; // log2 of the loss scales

/** A cell's counters with their prefix sums; several cells added up. A cell, as the data have it: [zeros, nonfinite,
 * first exponent, elements per binade, and of these the powers of two, those that round to overflow, those that round
 * to a normal number: each a list of index, count pairs]; or null where nothing was recorded. */
export function counters(cells) {
  const filled = cells.filter((cell) => cell && cell[3].length);
  const first = filled.reduce((least, cell) => Math.min(least, cell[2]), Infinity);
  const end = filled.reduce((most, cell) => Math.max(most, cell[2] + cell[3].length), -Infinity);
  const empty = () => new Array(filled.length ? end - first : 0).fill(0);
  const sum = { first, zeros: 0, nonfinite: 0, all: empty(), power: empty(), overflow: empty(), normal: empty() };
  for (const cell of cells) {
    if (!cell) continue;
    sum.zeros += cell[0];
    sum.nonfinite += cell[1];
    const start = cell[2] - first;
    cell[3].forEach((count, place) => (sum.all[start + place] += count));
    ["power", "overflow", "normal"].forEach((name, kind) => {
      const pairs = cell[4 + kind];
      for (let i = 0; i < pairs.length; i += 2) sum[name][start + pairs[i]] += pairs[i + 1];
    });
  }
  sum.before = [0];
  for (const count of sum.all) sum.before.push(sum.before.at(-1) + count);
  sum.nonzero = sum.before.at(-1);
  return sum;
}

/** Elements that a cast of 2^scale x to `format` flushes, makes subnormal and makes overflow: [least, most] each. The
 * two are equal for the format that the elements were counted for, `own`; another format's edges lie between. */
export function whatIf(counted, own, format, scale) {
  const at = (name, binade) => counted[name][binade - scale - counted.first] ?? 0;
  const upTo = (binade) => {
    if (counted.nonzero === 0) return 0;
    return counted.before[Math.min(Math.max(binade - scale - counted.first, 0), counted.all.length)];
  };
  const beyondEdge = (name, binade) => {
    if (format.edges[name] === own.edges[name]) return [at(name, binade), at(name, binade)];
    return format.edges[name] < own.edges[name] ? [at(name, binade), at("all", binade)] : [0, at(name, binade)];
  };
  const carried = beyondEdge("normal", format.below_normal);
  const below = carried.map((count) => upTo(format.below_normal) + at("all", format.below_normal) - count).reverse();
  const ties = upTo(format.flush) + at("power", format.flush);
  const flushed = format.flushes_powers_only ? [ties, ties] : below;
  const larger = counted.nonzero - upTo(format.largest + 1);
  return {
    nonzero: counted.nonzero,
    flushed,
    subnormal: format.flushes_powers_only ? below.map((count) => count - ties) : [0, 0],
    overflow: beyondEdge("overflow", format.largest).map((count) => larger + count),
  };
}

/** A share in percent, "0 %" and "100 %" only where it is. */
export function percent(count, whole) {
  const share = whole ? (100 * count) / whole : 0;
  if (share === 0 || share === 100) return `${share} %`;
  if (share < 0.01) return "< 0.01 %";
  return share > 99.9 ? "> 99.9 %" : `${share.toFixed(share < 1 ? 2 : 1)} %`;
}

/** The share of an outcome of `whatIf`, one or its two bounds. */
export const between = ([least, most], whole) =>
  least === most ? percent(least, whole) : `${percent(least, whole)} to ${percent(most, whole)}`;

/** All elements, with zeros, infinities and NaNs. */
export const size = (counted) => counted.nonzero + counted.zeros + counted.nonfinite;

