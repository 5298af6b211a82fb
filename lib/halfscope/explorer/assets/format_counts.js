// Counts under a format, as the library made them: named, and in words. Nothing is estimated here.

/** A cell of the data: [counters, relative error, dB, scale codes and exponents as index, count pairs, log2 of the
 * tensor's scale]. An error of null is lost, dB of null beside an error of 0 is exact. */
export function countsOf(names, [numbers, error, db, codes, exponents, scale]) {
  const counts = Object.fromEntries(names.map((name, index) => [name, numbers[index]]));
  const nonzero = counts.elements - counts.zeros - counts.nonfinite;
  return { ...counts, nonzero, error, db, codes, exponents, scale };
}

/** Pairs as consecutive bars. */
export function barsOf(pairs) {
  const places = pairs.filter((_, index) => index % 2 === 0);
  const first = places[0] ?? 0;
  const all = new Array(places.length ? places.at(-1) - first + 1 : 0).fill(0);
  for (let i = 0; i < pairs.length; i += 2) all[pairs[i] - first] = pairs[i + 1];
  return { first, all };
}

/** Larger is worse: lost errors are the worst of all. */
const loss = ({ error }) => error ?? Infinity;
const decibels = ({ error, db }) => (error === 0 ? "exact" : error === null ? "lost" : db.toFixed(1));
const number = (count) => count.toLocaleString("en");
