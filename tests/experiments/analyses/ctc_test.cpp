// The table of CTC in FP16: harmless for short utterances, and how it is printed.
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/experiments/found.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ctc_test {
namespace {

TEST_CASE("FP16 inside CTC keeps the loss at any length, the gradient of short utterances only",
          "[experiments]") {
  const Json rows = found(find_ctc).values;
  REQUIRE(rows.size() == 12);
  for (const Json& row : rows) {
    CAPTURE(row.dump());
    const auto frames = row.at("frames").get<std::int64_t>();
    const auto loss = row.at("loss").get<double>(), cosine = row.at("cosine").get<double>();
    const auto error = row.at("gradient_error").get<double>();
    CHECK(row.at("fp16_loss").get<double>() == Approx(loss).epsilon(0.03));
    CHECK(loss >= static_cast<double>(frames));  // logits that say nothing cost more than a unit per frame
    if (frames <= 75) CHECK(cosine > 0.95);
    if (frames >= 400) CHECK(cosine < 0.5);
    // Law of cosines: an error below 1 leaves an angle whose cosine is at least sqrt(1 - error^2).
    if (error < 1) CHECK(cosine >= std::sqrt(1 - error * error) - 1e-6);
  }
}

TEST_CASE("the table of CTC has a line per length, with one digit of the deviation", "[experiments]") {
  const std::string text = to_text(found(find_ctc), 100);
  CHECK(text.find("  frames   labels  logits    loss  in FP16  gradient's error  cosine\n") !=
        std::string::npos);
  CHECK(text.find("+-0.1  1015.1   1019.8           1.2e+02   0.336") != std::string::npos);
}

}  // namespace
}  // namespace halfscope::ctc_test
