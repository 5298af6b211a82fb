// Rows, or pieces of columns, with the instruction set in use.
#include <halfscope/kernel/reduce/magnitudes.hpp>

#include <algorithm>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/reduce/detail/magnitudes_simd.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t rows_at_once = 64;

void add_rows(std::span<const float> values, std::size_t length, std::span<double> sums) {
  parallel_for_ranges(std::ssize(sums), rows_at_once, [&](std::int64_t first, std::int64_t count) noexcept {
    dispatch_isa([&]<Isa isa>() {
      for (auto row = static_cast<std::size_t>(first), end = row + static_cast<std::size_t>(count); row < end;
           ++row)
        sums[row] = row_magnitude_isa<isa>(values.data() + row * length, length);
    });
  });
}

void add_columns(std::span<const float> values, const AxisExtents& axis, std::span<double> sums) {
  const std::size_t pieces = (axis.inner + magnitude_columns - 1) / magnitude_columns;
  parallel_for(static_cast<std::int64_t>(axis.outer * pieces), [&](std::int64_t index) noexcept {
    const std::size_t outer = static_cast<std::size_t>(index) / pieces;
    const std::size_t first = static_cast<std::size_t>(index) % pieces * magnitude_columns;
    const std::size_t columns = std::min(magnitude_columns, axis.inner - first);
    const Rows rows{.start = values.data() + outer * axis.summed * axis.inner + first,
                    .count = axis.summed,
                    .stride = axis.inner};
    dispatch_isa(
        [&]<Isa isa>() { column_magnitudes_isa<isa>(rows, columns, &sums[outer * axis.inner + first]); });
  });
}

}  // namespace

void magnitude_sums(std::span<const float> values, const AxisExtents& axis, std::span<double> sums) {
  detail::check_equal_sizes("magnitude_sums", values.size(), axis.outer * axis.summed * axis.inner);
  detail::check_equal_sizes("magnitude_sums", sums.size(), axis.outer * axis.inner);
  if (axis.inner == 1)
    add_rows(values, axis.summed, sums);
  else
    add_columns(values, axis, sums);
}

}  // namespace halfscope
