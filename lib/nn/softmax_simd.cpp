// Rows of a softmax, compiled once per instruction set: exponentials along a row, the ordered sum of a row
// in a lane of its own.
#include "lib/nn/softmax.hpp"

#include <utility>

#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/reduce/detail/reduce_simd.hpp>

#include "lib/nn/elementary.hpp"

namespace halfscope {
namespace {

/// Columns per pass: this many of all rows stay in the first-level cache.
constexpr std::size_t piece = 256;

HALFSCOPE_HD FloatVec larger(FloatVec a, FloatVec b) {
  return a < b ? b : a;
}

/// The largest of a row; a NaN may be passed over, since it makes the row's sum a NaN all the same.
float maximum(const float* x, std::size_t count) {
  float largest = x[0];
  std::size_t i = 0;
  if (count >= lanes) {
    FloatVec best = load(x);
    for (i = lanes; i + lanes <= count; i += lanes) best = larger(best, load(x + i));
    for (std::size_t lane = 0; lane < lanes; ++lane) largest = largest < best[lane] ? best[lane] : largest;
  }
  for (; i < count; ++i) largest = largest < x[i] ? x[i] : largest;
  return largest;
}

/// Elements of the lower (half = 0) or upper (half = 1) halves of a and b in turn.
template <std::size_t half, std::size_t... lane>
HALFSCOPE_HD FloatVec interleave(FloatVec a, FloatVec b, std::index_sequence<lane...> /*lanes*/) {
  return __builtin_shufflevector(a, b, static_cast<int>(half * lanes / 2 + lane / 2 + lane % 2 * lanes)...);
}

/// `lanes` vectors become their transpose: log2(lanes) perfect shuffles.
HALFSCOPE_HD void transpose_square(FloatVec (&rows)[lanes]) {
  constexpr auto all = std::make_index_sequence<lanes>{};
  for (std::size_t stride = 1; stride < lanes; stride *= 2) {
    FloatVec shuffled[lanes];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      shuffled[2 * i] = interleave<0>(rows[i], rows[i + lanes / 2], all);
      shuffled[2 * i + 1] = interleave<1>(rows[i], rows[i + lanes / 2], all);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lanes; ++i) rows[i] = shuffled[i];
  }
}

/// to[c * softmax_rows + r] = from[r * stride + c] for all rows of a full block.
void transpose_block(const float* from, std::size_t stride, float* to, std::size_t columns) {
  const std::size_t whole = columns / lanes * lanes;
  for (std::size_t r = 0; r < softmax_rows; r += lanes) {
    for (std::size_t c = 0; c < whole; c += lanes) {
      FloatVec square[lanes];
      for (std::size_t i = 0; i < lanes; ++i) square[i] = load(from + (r + i) * stride + c);
      transpose_square(square);
      for (std::size_t i = 0; i < lanes; ++i) store(to + (c + i) * softmax_rows + r, square[i]);
    }
  }
  for (std::size_t c = whole; c < columns; ++c) {
    for (std::size_t r = 0; r < softmax_rows; ++r) to[c * softmax_rows + r] = from[r * stride + c];
  }
}

/// e^(x - largest) into probability, and transposed into scratch.
void exponentials(const SoftmaxRows& rows, const float* largest) {
  for (std::size_t first = 0; first < rows.classes; first += piece) {
    const std::size_t columns = rows.classes - first < piece ? rows.classes - first : piece;
    for (std::size_t r = 0; r < rows.count; ++r) {
      const float* x = rows.logits + r * rows.classes + first;
      float* p = rows.probability + r * rows.classes + first;
      const float m = largest[r];
      for (std::size_t c = 0; c < columns; ++c) p[c] = x[c] - m;
      elementary_isa<target_isa>(Elementary::exp, p, p, columns);
    }
    float* to = rows.scratch + first * softmax_rows;
    if (rows.count == softmax_rows) {
      transpose_block(rows.probability + first, rows.classes, to, columns);
      continue;
    }
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < softmax_rows; ++r) {
        to[c * softmax_rows + r] = r < rows.count ? rows.probability[r * rows.classes + first + c] : 0.0f;
      }
    }
  }
}

/// The sums of scratch's columns, that is of the rows.
void sum_rows(const SoftmaxRows& rows, const AccumulateModel& model, float* sums) {
  constexpr auto width = static_cast<std::int64_t>(softmax_rows);
  const auto terms = static_cast<std::int64_t>(rows.classes);
  const ColumnTerms all{.x = rows.scratch, .rows = terms, .columns = width};
  if (model.order != AccumulateOrder::chunked) {
    return column_sums_isa<target_isa>(all, model, {0, terms, 0, width}, sums, nullptr);
  }
  const std::int64_t chunks = (terms + model.chunk - 1) / model.chunk;
  float* partial = rows.scratch + terms * width;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t first = i * model.chunk, last = first + model.chunk;
    column_sums_isa<target_isa>(all, {.format = model.format}, {first, last < terms ? last : terms, 0, width},
                                partial + i * width, nullptr);
  }
  const ColumnTerms sums_of_chunks{.x = partial, .rows = chunks, .columns = width};
  column_sums_isa<target_isa>(sums_of_chunks, {}, {0, chunks, 0, width}, sums, nullptr);
}

}  // namespace

template <Isa isa>
void softmax_rows_isa(const SoftmaxRows& rows, const AccumulateModel& model) {
  float largest[softmax_rows] = {}, sums[softmax_rows] = {};
  for (std::size_t r = 0; r < rows.count; ++r) {
    const float* x = rows.logits + r * rows.classes;
    largest[r] = maximum(x, rows.classes);
    rows.row_loss[r] = x[static_cast<std::size_t>(rows.labels[r])] - largest[r];
  }
  exponentials(rows, largest);
  sum_rows(rows, model, sums);
  for (std::size_t r = 0; r < rows.count; ++r) {
    float* p = rows.probability + r * rows.classes;
    const float sum = sums[r];
    for (std::size_t c = 0; c < rows.classes; ++c) p[c] /= sum;
    rows.row_loss[r] = log(sum) - rows.row_loss[r];
  }
}
template void softmax_rows_isa<target_isa>(const SoftmaxRows&, const AccumulateModel&);

}  // namespace halfscope
