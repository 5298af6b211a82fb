// The table of CTC in FP16: harmless for short utterances, and how it is printed.
#include "experiments/ablations/ctc_table.hpp"

#include <cmath>

#include "experiments/results/report_text.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ctc_table_test {
namespace {

TEST_CASE("FP16 inside CTC keeps the loss at any length, the gradient of short utterances only",
          "[experiments]") {
  const std::vector<CtcPrecisionRow> rows = ctc_precision_table();
  REQUIRE(rows.size() == 12);
  for (const CtcPrecisionRow& row : rows) {
    INFO(row.frames << " frames, deviation " << row.deviation);
    CHECK(row.fp16_loss == Approx(row.loss).epsilon(0.03));
    CHECK(row.loss >=
          static_cast<double>(row.frames));  // of logits that say nothing, more than a unit per frame
    if (row.frames <= 75) CHECK(row.cosine > 0.95);
    if (row.frames >= 400) CHECK(row.cosine < 0.5);
    // Law of cosines: an error below 1 leaves an angle whose cosine is at least sqrt(1 - error^2).
    if (row.gradient_error < 1)
      CHECK(row.cosine >= std::sqrt(1 - row.gradient_error * row.gradient_error) - 1e-6);
  }
}

TEST_CASE("the table of CTC has a line per length, with one digit of the deviation", "[experiments]") {
  Experiment experiment;
  experiment.name = "ctc";
  experiment.ctc_precision = [] {
    return std::vector<CtcPrecisionRow>{{400, 100, static_cast<double>(0.1f), 1015.1, 1019.8, 118, 0.336}};
  };
  const std::string text = to_table(experiment, {}, {.width = 100});
  CHECK(text.find("+-0.1  1015.1   1019.8           1.2e+02   0.336") != std::string::npos);
}

}  // namespace
}  // namespace halfscope::ctc_table_test
