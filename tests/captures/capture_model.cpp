// Captured sets computed by the models.
#include "tests/captures/capture_model.hpp"

#include <cmath>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

std::uint32_t code_of_sum(float x, DType sum) {
  if (sum == DType::f32) return to_bits(x);
  return std::isnan(x) ? 0x7FFFu : encode(x, fp16);
}

/// One tile, as its instructions add it up: `terms` products each, k ascending.
void model_tile(const CaptureSet& set, int tile, const TensorCoreStep& step, std::uint32_t* results) {
  const TileExtents extents = extents_of(set.instruction);
  const TileOperands operands = operands_of(set, tile);
  const auto depth = static_cast<std::size_t>(set.depth), columns = static_cast<std::size_t>(extents.columns),
             rows = static_cast<std::size_t>(extents.rows), terms = static_cast<std::size_t>(extents.terms);
  const FloatFormat sum = format_of(set.sum);
  const bool is_on_fp16 = set.instruction == CaptureInstruction::mma_m16n8k32;
  // The bits of tf32 that the instruction ignores are there.
  const FloatFormat input = set.input == CaptureInput::tf32 ? fp32 : format_of(set.input);
  std::vector<float> a(rows * depth), b(depth * columns);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = decode(operands.a[i], input);
  for (std::size_t n = 0; n < columns; ++n) {
    for (std::size_t k = 0; k < depth; ++k) b[n * depth + k] = decode(operands.b[k * columns + n], input);
  }
  for (std::size_t i = 0; i < rows * columns; ++i) {
    float c = decode(operands.c[i], sum);
    const std::span<const float> row(&a[i / columns * depth], depth), column(&b[i % columns * depth], depth);
    for (std::size_t k = 0; k < depth; k += terms) {
      const auto some_a = row.subspan(k, terms), some_b = column.subspan(k, terms);
      c = is_on_fp16 ? fp8_step_on_fp16(some_a, some_b, c, sum) : dot(some_a, some_b, c, step);
    }
    results[i] = code_of_sum(c, set.sum);
  }
}

/// Rounded once: to odd as a float first, which leaves the last rounding what it is.
std::uint32_t half_of(double x) {
  if (std::isnan(x)) return 0x7FFF;
  auto narrow = static_cast<float>(x);
  if (static_cast<double>(narrow) != x && std::isfinite(narrow) && to_bits(narrow) % 2 == 0) {
    narrow = std::nextafter(narrow, static_cast<double>(narrow) < x ? INFINITY : -INFINITY);
  }
  return encode(round(narrow, {.format = fp16}), fp16);
}

}  // namespace

TensorCoreStep step_of_set(const CaptureSet& set, const TensorCore& core) {
  return tensor_core_step(core, format_of(set.input), format_of(set.sum));
}

std::size_t count_modelled(const CaptureSet& set, int tile, const TensorCoreStep& one,
                           const TensorCoreStep& other) {
  const TileExtents extents = extents_of(set.instruction);
  std::vector<std::uint32_t> first(static_cast<std::size_t>(extents.rows * extents.columns)), second = first;
  model_tile(set, tile, one, first.data());
  model_tile(set, tile, other, second.data());
  std::size_t different = 0;
  for (std::size_t i = 0; i < first.size(); ++i) different += first[i] == second[i] ? 0u : 1u;
  return different;
}

std::vector<std::uint32_t> modelled_results(const CaptureSet& set, const TensorCore& core) {
  const TensorCoreStep step = step_of_set(set, core);
  const TileExtents extents = extents_of(set.instruction);
  std::vector<std::uint32_t> results(static_cast<std::size_t>(outputs_of(set)));
  parallel_for(set.tiles, [&](std::int64_t tile) noexcept {
    model_tile(set, static_cast<int>(tile), step, results.data() + tile * extents.rows * extents.columns);
  });
  return results;
}

std::vector<std::uint32_t> exact_results(const CaptureFunction& function) {
  std::vector<std::uint32_t> results(65536);
  for (std::uint32_t code = 0; code < results.size(); ++code)
    results[code] = half_of(function.exact(decode(code, fp16)));
  return results;
}

}  // namespace halfscope
