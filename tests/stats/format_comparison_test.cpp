// Comparisons of formats: sums, the cheapest within a limit, ties, and the sentences about them.
#include <halfscope/stats/format_comparison.hpp>

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::format_comparison_test {
namespace {

std::vector<TensorFormat> formats_of(const std::vector<std::string>& names) {
  std::vector<TensorFormat> formats;
  for (const std::string& name : names) formats.push_back(parse_tensor_format(name));
  return formats;
}

/// Counts of 64 elements in two blocks, with this error.
FormatCounts counts_of(double error, std::int64_t flushed = 0) {
  FormatCounts found;
  found.counts.elements = 64;
  found.counts.blocks = 2;
  found.counts.flushed = flushed;
  found.counts.signal.add(1);
  found.counts.error.add(error * error);
  return found;
}

const MatrixShape two_rows{2, 32};

TEST_CASE("the cheapest format has the fewest bits of those that fit in every tensor", "[formats]") {
  const auto formats = formats_of({"mxfp8_e4m3", "mxfp6_e2m3", "mxfp4"});
  const std::vector<FormatCounts> first{counts_of(0.02), counts_of(0.03), counts_of(0.1)};
  const std::vector<FormatCounts> second{counts_of(0.025), counts_of(0.0625), counts_of(0.15, 7)};
  const std::vector<ComparedTensor> tensors{{"a", two_rows, first}, {"b", two_rows, second}};
  const auto cheapest = [&](double limit) {
    const FormatComparison found = compare_formats(formats, tensors, {"--max-error", limit});
    return found.cheapest ? found.formats[*found.cheapest].name : "";
  };
  CHECK(cheapest(0.2) == "mxfp4");
  CHECK(cheapest(0.0625) == "mxfp6_e2m3");  // the limit itself fits
  CHECK(cheapest(0.0624) == "mxfp8_e4m3");
  CHECK(cheapest(0.02) == "");

  const FormatComparison found = compare_formats(formats, tensors, {"--max-error 2%", 0.02});
  CHECK(found.best() == 0);
  CHECK(found.formats[2].counts.flushed == 7);
  CHECK(found.formats[2].worst == 1u);
  CHECK(found.formats[2].worst_error == Approx(0.15));
  CHECK(found.formats[2].bits == 128 * 4 + 4 * 8);
  CHECK(found.formats[2].bits_per_element() == 4.25);
}

TEST_CASE("among formats of as many bits the one of the least error is chosen", "[formats]") {
  const auto formats = formats_of({"mxfp4/floor", "mxfp4/even", "mxfp4"});
  const std::vector<FormatCounts> counts{counts_of(0.12), counts_of(0.1), counts_of(0.11)};
  const FormatComparison found =
      compare_formats(formats, {{"a", two_rows, counts}}, {"--max-error 20%", 0.2});
  CHECK(found.cheapest == 1u);
}

TEST_CASE("sentences name the format, its cost and its error in the worst tensor", "[formats]") {
  const auto formats = formats_of({"mxfp8_e4m3", "mxfp4"});
  const std::vector<FormatCounts> counts{counts_of(0.025), counts_of(0.1)};
  const std::vector<ComparedTensor> tensors{{"layer.weight", two_rows, counts}};
  const FormatComparison fits = compare_formats(formats, tensors, {"max_error=0.05", 0.05});
  CHECK(cheapest_line(fits) ==
        "mxfp8_e4m3: 8.25 bits per element, error 2.50 % (32.0 dB) in layer.weight, the worst tensor; the "
        "cheapest of 2 formats under max_error=0.05.");
  CHECK(format_advice(fits).choice == "Use mxfp8_e4m3: 8.25 bits per element.");
  CHECK(format_advice(fits).reason ==
        "Error 2.50 % (32.0 dB) in layer.weight, the worst tensor; the cheapest of 2 formats under "
        "max_error=0.05.");

  const FormatComparison none = compare_formats(formats, tensors, {"max_error=0.01", 0.01});
  CHECK(cheapest_line(none) ==
        "No format stays under max_error=0.01; mxfp8_e4m3 comes closest: 8.25 bits per element, error 2.50 % "
        "(32.0 dB) in layer.weight, the worst tensor.");
  CHECK(format_advice(none).choice == "Add formats: none of these stays under max_error=0.01.");
}

TEST_CASE("a format that makes finite values NaN never fits", "[formats]") {
  FormatCounts lost = counts_of(0);
  lost.counts.lost = 1;
  const std::vector<FormatCounts> counts{lost};
  const double everything = std::numeric_limits<double>::max();
  const FormatComparison found =
      compare_formats(formats_of({"mxfp4"}), {{"a", two_rows, counts}}, {"limit", everything});
  CHECK_FALSE(found.cheapest);
  CHECK(cheapest_line(found).find("error without bound, as finite values become NaN, in a") < 200);
  CHECK(decibel_text(found.formats[0].worst_error) == "lost");
  CHECK(decibel_text(0) == "exact");
}

TEST_CASE("tensors that no block divides are padded, by rows and by columns", "[formats]") {
  const auto formats = formats_of({"mxfp4", "fp8_128x128", "fp8_e4m3"});
  const std::vector<FormatCounts> counts(3, counts_of(0.01));
  const FormatComparison found = compare_formats(
      formats,
      {{"a", {128, 256}, counts}, {"b", {64, 256}, counts}, {"c", {128, 40}, counts}, {"d", {0, 0}, counts}},
      {"limit", 1});
  CHECK(found.formats[0].padded == std::vector<std::size_t>{2});
  CHECK(found.formats[1].padded == std::vector<std::size_t>{1, 2});
  CHECK(found.formats[2].padded.empty());
}

TEST_CASE("a comparison needs a format, and counts of each", "[formats]") {
  CHECK(message_of<InvalidArgument>([] {
          (void)compare_formats({}, {}, {"limit", 1});
        }) == "a comparison of formats needs a format");
  const std::vector<FormatCounts> one{counts_of(0.1)};
  CHECK(message_of<InvalidArgument>([&] {
          (void)compare_formats(formats_of({"mxfp4", "nvfp4"}), {{"a", two_rows, one}}, {"limit", 1});
        }) == "'a' was counted for 1 formats, not for 2");
  const FormatComparison empty = compare_formats(formats_of({"mxfp4"}), {}, {"limit", 1});
  CHECK_FALSE(empty.cheapest);
  CHECK_FALSE(empty.formats[0].worst);
}

}  // namespace
}  // namespace halfscope::format_comparison_test
