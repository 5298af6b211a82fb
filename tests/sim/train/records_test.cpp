// Records read back as what was written.
#include "sim/train/records.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <vector>

#include <halfscope/io/json/histogram_json.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::records_test {
namespace {

/// The histogram's line in histograms.jsonl.
Json record_of(const std::vector<float>& values) {
  StepRecord step{.step = 1, .observations = StepObservations{}};
  HistogramRecord histogram{.tensor = "w", .what = "weight_gradient", .scale = 1, .histogram = {}};
  histogram.histogram.add(values);
  step.observations->histograms.push_back(histogram);
  RecordText text;
  append_record(text, step, nullptr);
  return parse_json_lines(text.histograms, "histograms").at(0);
}

TEST_CASE("a histogram's record reads back as the same counts", "[records]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float subnormal = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> sets{
      {},
      {0.0f, -0.0f, nan, infinity},
      {1.0f, -1.5f, 0x1p-25f, 0x1.fffp-15f, 0x1.ffep15f, 0.0f, -0.0f, nan, -infinity, infinity},
      {subnormal, std::numeric_limits<float>::max()}};
  for (const auto& values : sets) {
    ExponentHistogram expected;
    expected.add(values);
    const ExponentHistogram found = histogram_of(record_of(values));
    CHECK(found.elements() == expected.elements());
    CHECK(found.zeros() == expected.zeros());
    CHECK(found.negative_zeros() == expected.negative_zeros());
    CHECK(found.infinities() == expected.infinities());
    CHECK(found.nans() == expected.nans());
    for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
      CHECK(found.binade(exponent) == expected.binade(exponent));
    }
  }
}

}  // namespace
}  // namespace halfscope::records_test
