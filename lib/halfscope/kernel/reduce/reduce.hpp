// Sums over the rows of a matrix, column by column, with a named order of accumulation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/counted_dot.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/format/elements.hpp>

namespace halfscope {

/// Term of the sum over the rows r of column c.
enum class Term : std::uint8_t {
  value,              ///< x[r,c]
  squared_deviation,  ///< (x[r,c] - center[c])^2
  product,            ///< x[r,c] * y[r,c]
};

/// Row-major (rows, columns); every intermediate of a term is rounded to the model's format, as an
/// implementation in that precision computes it. On the device x and y may have 16 bits.
struct ColumnTerms {
  Term term = Term::value;
  ElementReader x{};              // (rows, columns)
  ElementReader y{};              // (rows, columns), for product
  const float* center = nullptr;  // (columns), for squared_deviation
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t matrices = 1;  ///< matrices in x and in y, one behind the other, each with sums of its own
};

/// sums (matrices, columns): of each column's terms as `model` adds them up; equals `accumulate` of each.
/// Throws InvalidArgument where the sizes disagree or `model` is a tensor core.
void column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums);

/// The same sums, and what happened to the partial sums on the way, over all columns together.
[[nodiscard]] ReductionCounters counted_column_sums(const ColumnTerms& terms, const AccumulateModel& model,
                                                    std::span<float> sums);

/// result[0] = `accumulate` of `terms`, divided by `divisor`: a loss, say, which stays where the active
/// device has its arrays. Throws InvalidArgument where `result` has another size.
void divided_sum(std::span<const float> terms, float divisor, const AccumulateModel& model,
                 std::span<float> result);

/// Counters of one column's partial sums.
struct ColumnCounters {
  std::int64_t stagnated = 0;
  std::int64_t first_overflow = -1;
  float largest_partial_sum = 0;

  /// Goes on with `part`, before which there were `adds_before` adds.
  HALFSCOPE_HD void merge(const ColumnCounters& part, std::int64_t adds_before) {
    stagnated += part.stagnated;
    largest_partial_sum =
        largest_partial_sum < part.largest_partial_sum ? part.largest_partial_sum : largest_partial_sum;
    if (first_overflow < 0 && part.first_overflow >= 0) first_overflow = adds_before + part.first_overflow;
  }
};

/// Sums of the counters of all columns, each a sum of `terms` terms.
[[nodiscard]] ReductionCounters counters_of(std::span<const ColumnCounters> column_counters,
                                            std::int64_t terms);

/// The same functions on arrays on the device, which the above call where that is the active one.
namespace cuda {
void column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums);
/// Also fills `column_counters`, one per column, on the device.
void counted_column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums,
                         std::span<ColumnCounters> column_counters);
void divided_sum(std::span<const float> terms, float divisor, const AccumulateModel& model,
                 std::span<float> result);
}  // namespace cuda

}  // namespace halfscope
