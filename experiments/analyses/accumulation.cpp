// Errors of sums by their length: draws terms, adds them up under every model, and compares.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <halfscope/arithmetic/counted_dot.hpp>
#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/sums_table.hpp"
#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace accumulation {
namespace {

constexpr std::int64_t sums = 32;
constexpr std::array<std::int64_t, 5> lengths{256, 1024, 4096, 16384, 65536};

enum class Kind : std::uint8_t { signed_products, positive_products, positive_terms, losses };
constexpr std::array<std::string_view, 4> kind_words{"dot products of normal numbers",
                                                     "dot products of uniform numbers",
                                                     "sums of uniform numbers", "sums of numbers near 8.3"};

bool has_products(Kind kind) {
  return kind == Kind::signed_products || kind == Kind::positive_products;
}

/// Factors, and what the sums of their products, or of a alone, ought to be.
struct Terms {
  Kind kind;
  std::int64_t length;
  std::vector<float> a{}, b{};                // (length, sums)
  std::vector<float> a_of_sum{}, b_of_sum{};  // (sums, length)
  std::vector<double> exact{}, magnitude{};   // (sums)
};

float draw(Kind kind, const RandomStream& stream, std::uint64_t index) {
  if (kind == Kind::signed_products) return round(normal_pair(stream, index)[0], {.format = fp16});
  return round(stream.uniform(index) + (kind == Kind::losses ? 7.8f : 0.0f), {.format = fp16});
}

Terms draw_terms(Kind kind, std::int64_t length) {
  Terms terms{.kind = kind, .length = length};
  const auto size = static_cast<std::size_t>(length * sums);
  const auto seed = static_cast<std::uint64_t>(length);
  for (std::uint64_t i = 0; i < size; ++i) {
    terms.a.push_back(draw(kind, {.seed = seed, .site = 1}, i));
    terms.b.push_back(has_products(kind) ? draw(kind, {.seed = seed, .site = 2}, i) : 1);
  }
  terms.a_of_sum.resize(size);
  terms.b_of_sum.resize(size);
  transpose(terms.a, length, sums, terms.a_of_sum);
  transpose(terms.b, length, sums, terms.b_of_sum);
  terms.exact.resize(sums);
  terms.magnitude.resize(sums);
  for (std::size_t i = 0; i < size; ++i) {
    const double product = static_cast<double>(terms.a[i]) * static_cast<double>(terms.b[i]);
    terms.exact[i % sums] += product;
    terms.magnitude[i % sums] += std::fabs(product);
  }
  return terms;
}

bool products_only(const AccumulateModel& model) {
  return model.order == AccumulateOrder::tensor_core || model.order == AccumulateOrder::fused;
}

/// How many adds one sum takes.
std::int64_t adds_of(const AccumulateModel& model, std::int64_t length) {
  if (model.order != AccumulateOrder::tensor_core) return length;
  const int width = tensor_core_step(model.core, model.format, fp32).products;
  return (length + width - 1) / width;
}

ReductionCounters add_up(const Terms& terms, const AccumulateModel& model, std::vector<float>& results) {
  results.resize(sums);
  if (!products_only(model)) {
    return counted_column_sums({.term = has_products(terms.kind) ? Term::product : Term::value,
                                .x = terms.a.data(),
                                .y = terms.b.data(),
                                .rows = terms.length,
                                .columns = sums},
                               model, results);
  }
  ReductionCounters counters;
  const auto length = static_cast<std::size_t>(terms.length);
  for (std::size_t c = 0; c < sums; ++c) {
    const auto a = std::span(terms.a_of_sum).subspan(c * length, length);
    const auto b = std::span(terms.b_of_sum).subspan(c * length, length);
    results[c] = model.order == AccumulateOrder::fused
                     ? counted_fused_dot(a, b, model.format, counters)
                     : counted_dot(a, b, 0, tensor_core_step(model.core, model.format, fp32), counters);
  }
  return counters;
}

std::optional<double> median_error(const Terms& terms, const std::vector<float>& results) {
  std::vector<double> errors;
  for (std::size_t c = 0; c < sums; ++c) {
    if (!std::isfinite(results[c])) continue;
    errors.push_back(std::fabs(static_cast<double>(results[c]) - terms.exact[c]) / terms.magnitude[c]);
  }
  if (errors.empty()) return std::nullopt;
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

bool adds_up(const AccumulateModel& model, Kind kind) {
  return has_products(kind) || !products_only(model);
}

AccumulationRow measure(const Terms& terms, const AccumulateModel& model) {
  std::vector<float> results;
  const ReductionCounters counters = add_up(terms, model, results);
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return {.terms = std::string(kind_words[static_cast<std::size_t>(terms.kind)]),
          .model = to_string(model),
          .count = terms.length,
          .relative_error = median_error(terms, results),
          .overflowed = share(counters.overflowed, sums),
          .stagnated = share(counters.stagnated, sums * adds_of(model, terms.length))};
}

std::vector<AccumulationRow> table_rows() {
  std::vector<AccumulationRow> rows;
  for (const Kind kind :
       {Kind::signed_products, Kind::positive_products, Kind::positive_terms, Kind::losses}) {
    for (const std::int64_t length : lengths) {
      const Terms terms = draw_terms(kind, length);
      for (const NamedAccumulateModel& named : accumulate_models) {
        const AccumulateModel model = parse_accumulate_model(named.name);
        if (adds_up(model, kind)) rows.push_back(measure(terms, model));
      }
    }
  }
  return rows;
}

}  // namespace
}  // namespace accumulation

AnalysisResult find_accumulation(const AnalysisInput& /*input*/) {
  return accumulation_finding(accumulation::table_rows());
}

}  // namespace halfscope
