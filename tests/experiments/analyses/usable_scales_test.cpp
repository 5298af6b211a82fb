// Constant loss scales at which every seed trains, from arms made by hand.
#include "tests/experiments/found.hpp"
#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::usable_scales_test {
namespace {

ArmSummary at_scale(const std::string& loss_scale, ArmSummary arm) {
  arm.loss_scale = loss_scale;
  return arm;
}

std::string words_of_sweep(std::vector<ArmSummary> arms) {
  return found(find_usable_scales, {}, {.metric = {}, .arms = std::move(arms)}).sentence;
}

TEST_CASE("a sweep names the longest run of usable scales, and whether scales between them were not run",
          "[verdict]") {
  const ArmSummary s1 = at_scale("1", arm_with("fp16_s1", 80)), s2 = at_scale("2", arm_with("fp16_s2", 81)),
                   s4 = at_scale("4", arm_with("fp16_s4", 80)),
                   s16 = at_scale("16", arm_with("fp16_s16", 79)),
                   broken = at_scale("4", diverged_arm("fp16_s4", 1, 1));
  CHECK(words_of_sweep({s1, s2, s4}) == "Every constant scale from 2^0 to 2^2 trains in every seed");
  CHECK(words_of_sweep({s1, s2, broken, s16}) == "Every constant scale from 2^0 to 2^1 trains in every seed");
  CHECK(words_of_sweep({broken, s16}) == "Every constant scale from 2^4 to 2^4 trains in every seed");
  CHECK(words_of_sweep({s1, s4, s16}) ==
        "Every constant scale that was run from 2^0 to 2^4 trains in every seed");
  CHECK(words_of_sweep({broken}) == "No constant scale that was run trains in every seed");
  CHECK(words_of_sweep({at_scale("dynamic", arm_with("fp16_dynamic", 80))}).empty());
  CHECK(words_of_sweep({}).empty());
}

}  // namespace
}  // namespace halfscope::usable_scales_test
