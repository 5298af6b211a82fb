// Splits column sums over threads, joins the sums of chunks, and merges what was counted.
#include <algorithm>
#include <vector>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include <halfscope/kernel/reduce/detail/reduce_element.hpp>
#include <halfscope/kernel/reduce/detail/reduce_simd.hpp>

namespace halfscope {
namespace {

/// Columns of one task: a whole number of every instruction set's vectors.
constexpr std::int64_t columns_per_task = 16;

/// `function` is the name of the one that is called, and of what it fills.
void check(const char* function, const ColumnTerms& terms, const AccumulateModel& model,
           std::span<float> sums) {
  detail::check_equal_sizes(function, static_cast<std::size_t>(terms.matrices * terms.columns), sums.size());
  if (model.order == AccumulateOrder::chunked && model.chunk < 1) {
    throw InvalidArgument("a chunk of column sums holds at least one term");
  }
  check_reduction_model(model);
  if (active_device() == Device::cuda) return;
  (void)terms.x.floats();
  (void)terms.y.floats();
}

void sum_range(const ColumnTerms& terms, const AccumulateModel& model, const ColumnRange& range, float* sums,
               ColumnCounters* column_counters) {
  dispatch_isa([&]<Isa isa>() { column_sums_isa<isa>(terms, model, range, sums, column_counters); });
}

/// `column_counters` is null or has one entry per column.
void chunked_sums(const ColumnTerms& terms, const AccumulateModel& model, float* sums,
                  ColumnCounters* column_counters) {
  const std::int64_t chunks = (terms.rows + model.chunk - 1) / model.chunk;
  const auto cells = static_cast<std::size_t>(chunks * terms.columns);
  std::vector<float> partial(cells);
  std::vector<ColumnCounters> partial_counters(column_counters == nullptr ? 0 : cells);
  parallel_for(chunks, [&](std::int64_t i) noexcept {
    const ColumnRange range{i * model.chunk, std::min(terms.rows, (i + 1) * model.chunk), 0, terms.columns};
    sum_range(terms, {.format = model.format}, range, partial.data() + i * terms.columns,
              column_counters == nullptr ? nullptr : partial_counters.data() + i * terms.columns);
  });
  const ColumnTerms sums_of_chunks{.x = partial.data(), .rows = chunks, .columns = terms.columns};
  sum_range(sums_of_chunks, {}, {0, chunks, 0, terms.columns}, sums, column_counters);
  if (column_counters == nullptr) return;
  const MergeCounters merge{partial_counters.data(), chunks, terms.columns, model.chunk, terms.rows,
                            column_counters};
  for (std::int64_t c = 0; c < terms.columns; ++c) merge(c);
}

void sum_matrix(const ColumnTerms& terms, const AccumulateModel& model, float* sums,
                ColumnCounters* column_counters) {
  if (model.order == AccumulateOrder::chunked) return chunked_sums(terms, model, sums, column_counters);
  const std::int64_t tasks = (terms.columns + columns_per_task - 1) / columns_per_task;
  parallel_for(tasks, [&](std::int64_t task) noexcept {
    const std::int64_t first = task * columns_per_task;
    const ColumnRange range{0, terms.rows, first, std::min(terms.columns, first + columns_per_task)};
    sum_range(terms, model, range, sums, column_counters);
  });
}

void sum(const ColumnTerms& terms, const AccumulateModel& model, float* sums,
         ColumnCounters* column_counters) {
  ColumnTerms matrix = terms;
  for (std::int64_t m = 0; m < terms.matrices; ++m) {
    sum_matrix(matrix, model, sums + m * terms.columns,
               column_counters == nullptr ? nullptr : column_counters + m * terms.columns);
    matrix.x = matrix.x.from(terms.rows * terms.columns);
    if (matrix.y.data != nullptr) matrix.y = matrix.y.from(terms.rows * terms.columns);
  }
}

std::vector<ColumnCounters> counted_sums(const ColumnTerms& terms, const AccumulateModel& model,
                                         std::span<float> sums) {
  std::vector<ColumnCounters> column_counters(sums.size());
  sum(terms, model, sums.data(), column_counters.data());
  return column_counters;
}

}  // namespace

void column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums) {
  check("column_sums: sums", terms, model, sums);
  if (active_device() == Device::cuda) return cuda::column_sums(terms, model, sums);
  sum(terms, model, sums.data(), nullptr);
}

void divided_sum(std::span<const float> terms, float divisor, const AccumulateModel& model,
                 std::span<float> result) {
  detail::check_equal_sizes("divided_sum: results", 1, result.size());
  if (active_device() == Device::cuda) return cuda::divided_sum(terms, divisor, model, result);
  result[0] = accumulate(terms, model) / divisor;
}

ReductionCounters counters_of(std::span<const ColumnCounters> column_counters, std::int64_t terms) {
  ReductionCounters all;
  for (const ColumnCounters& counters : column_counters) {
    all.merge({.reductions = 1,
               .terms = terms,
               .overflowed = counters.first_overflow >= 0 ? 1 : 0,
               .first_overflow = counters.first_overflow,
               .stagnated = counters.stagnated,
               .largest_partial_sum = counters.largest_partial_sum});
  }
  return all;
}

ReductionCounters counted_column_sums(const ColumnTerms& terms, const AccumulateModel& model,
                                      std::span<float> sums) {
  check("counted_column_sums: sums", terms, model, sums);
  if (active_device() == Device::cpu) return counters_of(counted_sums(terms, model, sums), terms.rows);
  auto column_counters = Memory<ColumnCounters>::zeros(sums.size());  // their padding is copied too
  cuda::counted_column_sums(terms, model, sums, column_counters.values());
  return counters_of(column_counters.to_host(), terms.rows);
}

}  // namespace halfscope
