// Column sums equal the scalar definition of every accumulation model, and their counters a plain count.
#include <halfscope/core/isa.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::reduce_test {
namespace {

struct Problem {
  std::int64_t rows, columns;
  std::vector<float> x, y, center;
};

Problem make_problem(std::int64_t rows, std::int64_t columns) {
  const auto size = static_cast<std::size_t>(rows * columns);
  return {rows, columns, uniform_floats(size, -1, 3, 5), uniform_floats(size, -2, 2, 6),
          uniform_floats(static_cast<std::size_t>(columns), 0, 1, 7)};
}

ColumnTerms terms_of(const Problem& problem, Term term) {
  return {term, problem.x.data(), problem.y.data(), problem.center.data(), problem.rows, problem.columns};
}

/// Column c's terms as the header defines them.
std::vector<float> column(const Problem& problem, Term term, std::int64_t c, const FloatFormat& format) {
  const Quantizer q{.format = format};
  std::vector<float> terms;
  for (std::int64_t r = 0; r < problem.rows; ++r) {
    const auto i = static_cast<std::size_t>(r * problem.columns + c);
    const float deviation = round(problem.x[i] - problem.center[static_cast<std::size_t>(c)], q);
    terms.push_back(term == Term::value     ? round(problem.x[i], q)
                    : term == Term::product ? round(problem.x[i] * problem.y[i], q)
                                            : round(deviation * deviation, q));
  }
  return terms;
}

/// The listed models that sums of single terms have.
std::vector<NamedAccumulateModel> reduction_models() {
  std::vector<NamedAccumulateModel> models;
  for (const auto& entry : accumulate_models) {
    const AccumulateOrder order = parse_accumulate_model(entry.name).order;
    if (order != AccumulateOrder::tensor_core && order != AccumulateOrder::fused) models.push_back(entry);
  }
  return models;
}

TEST_CASE("column_sums equals accumulate for every model, term and instruction set", "[reduce]") {
  for (const auto& [rows, columns] : {std::pair{0, 3}, {1, 1}, {31, 17}, {700, 37}}) {
    const Problem problem = make_problem(rows, columns);
    for (const auto& entry : reduction_models()) {
      const AccumulateModel model = parse_accumulate_model(entry.name);
      for (const Term term : {Term::value, Term::squared_deviation, Term::product}) {
        std::vector<float> expected;
        for (std::int64_t c = 0; c < columns; ++c) {
          expected.push_back(accumulate(column(problem, term, c, model.format), model));
        }
        for (const Isa isa : available_isas()) {
          const ForcedIsa forced(isa);
          INFO(entry.name << " on " << name_of(isa) << ", " << rows << " rows of " << columns);
          std::vector<float> sums(expected.size());
          column_sums(terms_of(problem, term), model, sums);
          CHECK(sums == expected);
          std::vector<float> counted(expected.size());
          (void)counted_column_sums(terms_of(problem, term), model, counted);
          CHECK(counted == expected);
        }
      }
    }
  }
}

TEST_CASE("column_sums gives the same bits with two threads", "[reduce][threads]") {
  const Problem problem = make_problem(3000, 40);
  for (const auto& entry : reduction_models()) {
    const AccumulateModel model = parse_accumulate_model(entry.name);
    std::vector<float> one(40), two(40);
    const ReductionCounters once = counted_column_sums(terms_of(problem, Term::value), model, one);
    const ReductionCounters twice =
        with_threads(2, [&] { return counted_column_sums(terms_of(problem, Term::value), model, two); });
    CHECK(one == two);
    CHECK(once == twice);
  }
}

TEST_CASE("several matrices are summed as each by itself", "[reduce]") {
  const Problem problem = make_problem(600, 20);
  for (const auto& entry : reduction_models()) {
    const AccumulateModel model = parse_accumulate_model(entry.name);
    ColumnTerms terms = terms_of(problem, Term::product);
    terms.rows = 200;
    terms.matrices = 3;
    std::vector<float> together(60), alone(60);
    const ReductionCounters counted = counted_column_sums(terms, model, together);
    terms.matrices = 1;
    ReductionCounters merged;
    for (std::size_t m = 0; m < 3; ++m) {
      merged.merge(counted_column_sums(terms, model, std::span(alone).subspan(20 * m, 20)));
      terms.x = terms.x.from(200 * 20);
      terms.y = terms.y.from(200 * 20);
    }
    CHECK(together == alone);
    CHECK(counted == merged);
    CHECK(counted.reductions == 60);
  }
}

TEST_CASE("an FP16 sum of ones stagnates at 2048", "[reduce][known]") {
  const std::vector<float> ones(5000, 1.0f);
  const ColumnTerms terms{.x = ones.data(), .rows = 5000, .columns = 1};
  std::vector<float> sum(1);
  const ReductionCounters counters = counted_column_sums(terms, {.format = fp16}, sum);
  CHECK(sum[0] == 2048.0f);
  CHECK(counters.stagnated == 5000 - 2048);
  CHECK(counters.largest_partial_sum == 2048.0f);
  CHECK(counters.overflowed == 0);
  CHECK(counters.terms == 5000);
  (void)counted_column_sums(terms, {.format = fp16, .order = AccumulateOrder::pairwise}, sum);
  CHECK(sum[0] == 5000.0f);
}

TEST_CASE("a tensor core adds up no columns", "[reduce]") {
  const std::vector<float> ones(4, 1.0f);
  std::vector<float> sum(1);
  CHECK_THROWS_AS(column_sums({.x = ones.data(), .rows = 4, .columns = 1},
                              parse_accumulate_model("tensor_core(hopper)"), sum),
                  InvalidArgument);
}

TEST_CASE("the add that overflows is named", "[reduce][known]") {
  // 1024 * 64 = 65536 is beyond FP16: the 64th add overflows, in one of two columns.
  std::vector<float> values;
  for (int r = 0; r < 100; ++r) values.insert(values.end(), {1024.0f, 1.0f});
  const ColumnTerms terms{.x = values.data(), .rows = 100, .columns = 2};
  std::vector<float> sums(2);
  const ReductionCounters counters = counted_column_sums(terms, {.format = fp16}, sums);
  CHECK(std::isinf(sums[0]));
  CHECK(sums[1] == 100.0f);
  CHECK(counters.reductions == 2);
  CHECK(counters.overflowed == 1);
  CHECK(counters.first_overflow == 63);
  CHECK(counters.largest_partial_sum == 63.0f * 1024.0f);
  const ReductionCounters chunked =
      counted_column_sums(terms, parse_accumulate_model("fp16_chunked(50)"), sums);
  CHECK(sums[0] == 102400.0f);
  CHECK(chunked.overflowed == 0);
  CHECK(chunked.largest_partial_sum == 102400.0f);
}

TEST_CASE("counters equal a count made add by add", "[reduce]") {
  const Problem problem = make_problem(3000, 19);
  const AccumulateModel model{.format = fp16};
  std::vector<float> sums(19);
  const ReductionCounters counters =
      counted_column_sums(terms_of(problem, Term::squared_deviation), model, sums);
  std::int64_t stagnated = 0;
  float largest = 0;
  for (std::int64_t c = 0; c < 19; ++c) {
    float sum = 0;
    for (const float term : column(problem, Term::squared_deviation, c, fp16)) {
      const float next = round(sum + term, {.format = fp16});
      if (term != 0 && next == sum) ++stagnated;
      sum = next;
      largest = std::max(largest, sum);
    }
  }
  CHECK(stagnated > 0);
  CHECK(counters.stagnated == stagnated);
  CHECK(counters.largest_partial_sum == largest);
}

}  // namespace
}  // namespace halfscope::reduce_test
