// Records read back as what was written.
#include "sim/train/records.hpp"

#include <halfscope/io/histogram_record.hpp>

#include <limits>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
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

TEST_CASE("a record's max_abs is read where it has one", "[records]") {
  Json record = record_of({1.0f, -4.5f});
  CHECK(histogram_of(record).max_abs() == 0);
  record["max_abs"] = 4.5;
  CHECK(histogram_of(record).max_abs() == 4.5f);
}

TEST_CASE("a record that is no histogram is refused with what is wrong", "[records]") {
  const Json good = record_of({1.0f, 4.0f});
  const auto refusal = [](const Json& record) {
    return message_of<InvalidArgument>([&] { static_cast<void>(histogram_of(record)); });
  };
  Json lacks_zeros = good;
  lacks_zeros.erase("zeros");
  check_says(refusal(lacks_zeros), {"lacks 'zeros'"});
  Json far = good;
  far["first_exponent"] = 126;
  check_says(refusal(far), {"outside -149 to 127"});
  Json uneven = good;
  uneven["top"].push_back(1);
  check_says(refusal(uneven), {"top has 4 binades, counts has 3"});
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return refusal(changed);
  };
  check_says(refusal({1, 2}), {"lacks 'counts'"});
  check_says(with("counts", nullptr), {"counts = null; expected a list of integers"});
  check_says(with("pow2", {1, 0, 0.5}), {"pow2 = [1,0,0.5]; expected a list of integers"});
  check_says(with("pow2", {1, 0, 7}), {"pow2: 7 of 1"});
  check_says(with("counts", {1, -1, 1}), {"counts: -1 of -1"});
  check_says(with("first_exponent", "0"), {"first_exponent = \"0\"; expected an integer"});
  check_says(with("first_exponent", std::numeric_limits<std::int64_t>::max()), {"outside -149 to 127"});
  check_says(with("nans", -1), {"nans = -1 is negative"});
  check_says(with("max_abs", "big"), {"max_abs = \"big\"; expected a number"});
}

}  // namespace
}  // namespace halfscope
