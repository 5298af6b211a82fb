// Column sums on the device: a thread per column, and where they are chunked per column and chunk.
#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/detail/device_adds.cuh>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/reduce/detail/reduce_element.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

namespace halfscope::cuda {
namespace {

/// Columns of all matrices together.
std::int64_t all_columns(const ColumnTerms& terms) {
  return terms.matrices * terms.columns;
}

/// The elements of column c of a matrix whose elements begin at `first`.
struct MatrixColumn {
  ColumnTerms terms;
  std::int64_t first, c;
  [[nodiscard]] HALFSCOPE_HD std::int64_t place(std::int64_t row) const {
    return first + row * terms.columns + c;
  }
  [[nodiscard]] HALFSCOPE_HD float x(std::int64_t row) const { return terms.x[place(row)]; }
  [[nodiscard]] HALFSCOPE_HD float y(std::int64_t row) const { return terms.y[place(row)]; }
  [[nodiscard]] HALFSCOPE_HD float center() const { return terms.center[c]; }
};

/// The sums of runs of `run` rows each, sums[run index, matrix, column]; all rows are one run but of chunked
/// sums.
template <typename Adds>
struct SumRun {
  ColumnTerms terms;
  AccumulateOrder order;
  std::int64_t run;
  Adds adds;
  float* sums;
  ColumnCounters* column_counters;  ///< null where nothing is counted

  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t matrix = i / terms.columns % terms.matrices, c = i % terms.columns;
    const TermsOfColumn<MatrixColumn, Adds> term{
        terms.term, {terms, matrix * terms.rows * terms.columns, c}, adds};
    const std::int64_t first = i / (terms.matrices * terms.columns) * run;
    const TermRange rows{first, terms.rows - first < run ? terms.rows : first + run};
    ColumnCounters* const counters = column_counters == nullptr ? nullptr : column_counters + i;
    sums[i] = column_sum<float>(order, term, rows, adds, counters);
  }
};

struct Divide {
  float* value;
  float divisor;
  HALFSCOPE_HD void operator()(std::int64_t) const { *value /= divisor; }
};

std::int64_t run_count(const ColumnTerms& terms, std::int64_t run) {
  return terms.rows == 0 ? 1 : (terms.rows + run - 1) / run;
}

/// `terms` with memory of the device.
ColumnTerms terms_on_device(const ColumnTerms& terms) {
  const auto cells = static_cast<std::size_t>(terms.rows * all_columns(terms));
  (void)on_device(ConstArrayView(terms.x.data, cells, terms.x.storage));
  if (terms.term == Term::product) (void)on_device(ConstArrayView(terms.y.data, cells, terms.y.storage));
  if (terms.term == Term::squared_deviation)
    (void)on_device(std::span(terms.center, static_cast<std::size_t>(terms.columns)));
  return terms;
}

/// Runs of `run` rows, each summed in `model.order`, or sequentially where that is of chunks.
void sum_runs(const ColumnTerms& terms, const AccumulateModel& model, std::int64_t run, std::span<float> sums,
              std::span<ColumnCounters> column_counters) {
  with_adds(model.format, [&]<typename Adds>(const Adds& adds) {
    for_each(static_cast<std::int64_t>(sums.size()),
             SumRun<Adds>{terms_on_device(terms), model.order, run, adds, on_device(sums),
                          on_device(column_counters)},
             "column_sums");
  });
}

/// `column_counters` is empty or has one entry per column.
void sum(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums,
         std::span<ColumnCounters> column_counters) {
  const std::int64_t all_rows = terms.rows > 0 ? terms.rows : 1;
  if (model.order != AccumulateOrder::chunked) return sum_runs(terms, model, all_rows, sums, column_counters);
  const std::int64_t chunks = run_count(terms, model.chunk);
  const std::int64_t columns = all_columns(terms);
  const auto cells = static_cast<std::size_t>(chunks * columns);
  Memory<float> partial(cells);
  Memory<ColumnCounters> chunk_counters(column_counters.empty() ? 0 : cells);
  sum_runs(terms, model, model.chunk, partial.values(), chunk_counters.values());
  const ColumnTerms sums_of_chunks{.x = partial.data(), .rows = chunks, .columns = columns};
  sum_runs(sums_of_chunks, {}, chunks, sums, column_counters);
  if (column_counters.empty()) return;
  for_each(columns,
           MergeCounters{on_device(std::span<const ColumnCounters>(chunk_counters.values())), chunks, columns,
                         model.chunk, terms.rows, on_device(column_counters)},
           "counted_column_sums");
}

}  // namespace

void column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums) {
  sum(terms, model, sums, {});
}

void counted_column_sums(const ColumnTerms& terms, const AccumulateModel& model, std::span<float> sums,
                         std::span<ColumnCounters> column_counters) {
  detail::check_equal_sizes("counted_column_sums: counters", sums.size(), column_counters.size());
  sum(terms, model, sums, column_counters);
}

void divided_sum(std::span<const float> terms, float divisor, const AccumulateModel& model,
                 std::span<float> result) {
  sum({.x = terms.data(), .rows = std::ssize(terms), .columns = 1}, model, result, {});
  for_each(1, Divide{on_device(result), divisor}, "divided_sum");
}

}  // namespace halfscope::cuda
