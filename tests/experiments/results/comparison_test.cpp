// Sentences of a verdict: an arm against its baseline in every comparison, and placeholders filled in.
#include "experiments/results/comparison.hpp"

#include "experiments/definition/experiment.hpp"
#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::comparison_test {
namespace {

const ReportedMetric accuracy{};
const ReportedMetric ap50{.name = "AP50", .unit = "", .comparison = Comparison::difference, .digits = 3};
const ReportedMetric perplexity{
    .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true, .digits = 1};

/// "ours" against "theirs".
std::string compared(const ReportedMetric& metric, std::vector<ArmSummary> arms) {
  return against_baseline({.metric = metric, .arms = std::move(arms)}, "ours", "theirs");
}

TEST_CASE("a value has its metric's digits and unit", "[verdict]") {
  CHECK(with_unit(accuracy, 63.3149) == "63.31 %");
  CHECK(with_unit(ap50, 0.5251) == "0.525");
  CHECK(with_unit(perplexity, 120.26) == "120.3");
}

TEST_CASE("an arm ends above, below or at a multiple of its baseline", "[verdict]") {
  CHECK(compared(accuracy, {arm_with("ours", 44.4), arm_with("theirs", 65.8)}) ==
        "ours ends 21.40 points below theirs (44.40 against 65.80 %)");
  CHECK(compared(accuracy, {arm_with("ours", 66.0), arm_with("theirs", 65.75)}) ==
        "ours ends 0.25 points above theirs (66.00 against 65.75 %)");
  CHECK(compared(accuracy, {arm_with("ours", 66.0), arm_with("theirs", 66.0)}) ==
        "ours ends 0.00 points above theirs (66.00 against 66.00 %)");
  CHECK(compared(ap50, {arm_with("ours", 0.25), arm_with("theirs", 0.631)}) ==
        "ours ends 0.381 below theirs (0.250 against 0.631)");
  CHECK(compared(perplexity, {arm_with("ours", 229.0), arm_with("theirs", 100.0)}) ==
        "ours ends at 2.290 times theirs (229.0 against 100.0)");
}

TEST_CASE("an arm without a baseline says its own value", "[verdict]") {
  const std::string alone = "ours ends at 44.40 % (no theirs to compare with)";
  CHECK(compared(accuracy, {arm_with("ours", 44.4)}) == alone);
  CHECK(compared(accuracy, {arm_with("ours", 44.4), diverged_arm("theirs", 1, 1)}) == alone);
}

TEST_CASE("an arm that diverged or was not run says so", "[verdict]") {
  CHECK(compared(accuracy, {arm_with("theirs", 1)}) == "ours was not run");
  CHECK(compared(accuracy, {diverged_arm("ours", 1, 1), arm_with("theirs", 1)}) ==
        "ours diverged in 1 of 1 seed (first at step 17)");
  CHECK(compared(accuracy, {diverged_arm("ours", 3, 3)}) ==
        "ours diverged in 3 of 3 seeds (first at step 17)");
  CHECK(compared(accuracy, {diverged_arm("ours", 1, 3, 60.0), arm_with("theirs", 61.0)}) ==
        "ours ends 1.00 points below theirs (60.00 against 61.00 %); ours diverged in 1 of 3 seeds (first at "
        "step 17)");
  CHECK(compared(accuracy, {diverged_arm("ours", 2, 3, 60.0)}) ==
        "ours ends at 60.00 % (no theirs to compare with); ours diverged in 2 of 3 seeds (first at step 17)");
}

TEST_CASE("seeds beyond the untrained model are told apart from those that broke down", "[verdict]") {
  ArmSummary ours = diverged_arm("ours", 3, 3);
  ours.beyond = 2;
  CHECK(diverged_words(ours) ==
        "ours diverged in 3 of 3 seeds (first at step 17; 2 ended beyond 10 times the untrained model)");
  ours.diverged_step.reset();
  ours.beyond = 3;
  CHECK(diverged_words(ours) ==
        "ours diverged in 3 of 3 seeds (3 ended beyond 10 times the untrained model)");
}

/// Two arms with results, `gone` without a mean; a finding on all and on `ours`.
ExperimentSummary results() {
  ExperimentSummary summary{
      .metric = accuracy,
      .arms = {steady_arm("ours", 60.0), steady_arm("theirs", 80.0), diverged_arm("gone", 3, 3)}};
  set_column(summary.arms[0], "lost_updates", 0.125);
  set_column(summary.arms[0], "skipped", 2.5);
  summary.findings = {
      {.key = "k", .analysis = "told", .sentence = "all is told", .on_arms = {{"ours", "ours is told"}}},
      {.key = "s", .analysis = "silent"}};
  return summary;
}

std::string said(const std::string& text) {
  return fill_in({{.text = text}}, results());
}

const std::string nothing = "No arms to compare were run.";

TEST_CASE("a placeholder becomes words, a number, a column or a finding", "[verdict]") {
  CHECK(said("So {ours | theirs}.") == "So ours ends 20.00 points below theirs (60.00 against 80.00 %).");
  CHECK(said("{gone | theirs}") == "gone diverged in 3 of 3 seeds (first at step 17)");
  CHECK(said("{ours / theirs} times") == "0.75 times");
  CHECK(said("{ours - theirs} behind") == "20.00 behind");
  CHECK(said("{theirs - ours} behind") == "-20.00 behind");
  CHECK(said("{ours % theirs} lost") == "25 % lost");
  CHECK(said("{ours.lost_updates} lost") == "12.5 % lost");
  CHECK(said("{ours.lost_updates:0} lost") == "12 % lost");
  CHECK(said("{ours.skipped:1} skipped") == "2.5 skipped");
  CHECK(said("See: {told}; {told: ours}.") == "See: all is told; ours is told.");
  CHECK(said("no braces") == "no braces");
}

TEST_CASE("a text that needs what is not there is left out", "[verdict]") {
  for (const char* text :
       {"{none | theirs}", "{none.skipped}", "{ours / none}", "{gone / theirs}", "{ours % gone}",
        "{theirs.skipped}", "{told: theirs}", "{silent}", "{other}", "{ours | theirs} {none | theirs}"}) {
    CAPTURE(text);
    CHECK(said(text) == nothing);
  }
  CHECK(fill_in({{.text = "{none | theirs}"}, {.text = "One."}, {.text = "Two."}}, results()) == "One. Two.");
  CHECK(fill_in({}, results()) == nothing);
}

TEST_CASE("a sentence is said when all that it waits for holds, otherwise another or none", "[verdict]") {
  const Expectation worse{"ours", "theirs", Expected::worse, 1}, good{"ours", "theirs", Expected::as_good, 1};
  const Expectation open{"none", "theirs", Expected::worse, 1};
  const auto told = [](std::vector<Expectation> when, std::string otherwise) {
    return fill_in({{.text = "Yes.", .when = std::move(when), .otherwise = std::move(otherwise)}}, results());
  };
  CHECK(told({worse}, "No.") == "Yes.");
  CHECK(told({good}, "No.") == "No.");
  CHECK(told({worse, good}, "No.") == "No.");
  CHECK(told({open}, "No.") == "No.");
  CHECK(told({good}, "") == nothing);
  CHECK(told({good}, "{ours.skipped:1}.") == "2.5.");
}

TEST_CASE("a list joins the items that are said, and lists nest", "[verdict]") {
  const Sentence inner{
      .text = "in (", .items = {{.text = "{ours.skipped:1}"}, {.text = "b"}}, .join = ", ", .closing = ")"};
  const auto listed = [](std::vector<Sentence> items) {
    return fill_in({{.text = "Found: ", .items = std::move(items)}}, results());
  };
  CHECK(listed({{.text = "a"}, {.text = "{none.skipped}"}, {.text = "c"}}) == "Found: a; c.");
  CHECK(listed({inner, {.text = "d"}}) == "Found: in (2.5, b); d.");
  CHECK(listed({{.text = "{none.skipped}"}}) == nothing);
  CHECK(fill_in({{.text = "{none.skipped}", .items = {{.text = "a"}}}}, results()) == nothing);
  CHECK(fill_in({{.text = "x ", .items = {{.text = "a"}}, .closing = " {ours.skipped:1}!"}}, results()) ==
        "x a 2.5!");
}

}  // namespace
}  // namespace halfscope::comparison_test
