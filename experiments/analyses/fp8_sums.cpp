// FP8 dot products as Hopper's and Blackwell's tensor cores add them up, with and without promotion.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/drawn.hpp"

namespace halfscope {
namespace fp8_sums {
namespace {

constexpr std::size_t sums = 512;
constexpr std::array<std::size_t, 3> lengths{256, 1024, 4096};
constexpr std::array models{"fp8_e4m3_tensor_core(hopper)", "fp8_e4m3_tensor_core(hopper, promote=512)",
                            "fp8_e4m3_tensor_core(hopper, promote=128)", "fp8_e4m3_tensor_core(blackwell)"};

enum class Signs : std::uint8_t { both, one };

/// (sums, length) numbers of E4M3: standard normal, or uniform on [0, 1).
std::vector<float> operand(std::size_t length, Signs signs, std::uint32_t site) {
  std::vector<float> numbers = normal_numbers(sums * length, site);
  if (signs == Signs::one) {
    const RandomStream stream{.site = site};
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = stream.uniform(i);
  }
  round(numbers, numbers, {.format = fp8_e4m3, .overflow = Overflow::saturate});
  return numbers;
}

struct Products {
  std::size_t length;
  std::vector<float> a, b;
  std::vector<double> exact;  // (sums)
};

Products draw_products(std::size_t length, Signs signs) {
  Products drawn{length, operand(length, signs, 1), operand(length, signs, 2), {}};
  for (std::size_t s = 0; s < sums; ++s) {
    double sum = 0;
    for (std::size_t k = s * length; k < (s + 1) * length; ++k)
      sum += static_cast<double>(drawn.a[k]) * static_cast<double>(drawn.b[k]);
    drawn.exact.push_back(sum);
  }
  return drawn;
}

/// The sums' errors.
std::vector<double> errors_of(const Products& drawn, const AccumulateModel& model) {
  std::vector<double> errors;
  for (std::size_t s = 0; s < sums; ++s) {
    const auto a = std::span(drawn.a).subspan(s * drawn.length, drawn.length);
    const auto b = std::span(drawn.b).subspan(s * drawn.length, drawn.length);
    errors.push_back(static_cast<double>(accumulate_products(a, b, model)) - drawn.exact[s]);
  }
  return errors;
}

/// The largest error over the results' root mean square.
double largest_error(const Products& drawn, const std::vector<double>& errors) {
  double largest = 0, squares = 0;
  for (const double error : errors) largest = std::max(largest, std::fabs(error));
  for (const double exact : drawn.exact) squares += exact * exact;
  return largest / std::sqrt(squares / sums);
}

/// The mean error over the results' mean.
double bias(const Products& drawn, const std::vector<double>& errors) {
  double of_errors = 0, of_results = 0;
  for (const double error : errors) of_errors += error;
  for (const double exact : drawn.exact) of_results += exact;
  return of_errors / of_results;
}

}  // namespace
}  // namespace fp8_sums

AnalysisResult find_fp8_sums(const AnalysisInput& /*input*/) {
  using namespace fp8_sums;
  Table table{{{"model", "E4M3 products"},
               {"terms", "K"},
               {"largest_error", "largest error / RMS"},
               {"bias", "mean error, one sign"}},
              {}};
  for (const std::size_t length : lengths) {
    const Products both = draw_products(length, Signs::both), one = draw_products(length, Signs::one);
    for (const char* name : models) {
      const AccumulateModel model = parse_accumulate_model(name);
      const double largest = largest_error(both, errors_of(both, model)),
                   mean = bias(one, errors_of(one, model));
      table.rows.push_back({std::string(name),
                            count_cell(static_cast<std::int64_t>(length)),
                            {fmt::format("{:.1e}", largest), largest},
                            {fmt::format("{:+.3f} %", 100 * mean), mean}});
    }
  }
  AnalysisResult finding{.key = "fp8_sums", .values = rows_json(table)};
  finding.sections.push_back(
      {.heading = "Sums of products of E4M3: of standard normal numbers, and of uniform ones, whose "
                  "products have one sign",
       .table = std::move(table)});
  return finding;
}

}  // namespace halfscope
