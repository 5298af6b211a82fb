// Predicted beside counted underflow, from records made by hand: which steps, seeds, casts and arms count.
#include <nlohmann/json.hpp>

#include "tests/experiments/found.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::predictions_test {
namespace {

Experiment experiment() {
  return {.name = "tiny",
          .varied = {"loss_scale"},
          .predicts_from = "fp32",
          .arms = {{"fp32", "", {}}, {"s1", "", {}}, {"s32", "", {}}}};
}

Json predictions(const TemporaryFolder& folder) {
  return found(find_predictions, experiment(), {}, folder.path()).values;
}

/// A line of histograms.jsonl: 8 elements in [2^-30, 2^-29), 4 in [2^-25, 2^-24) of which 3 are 2^-25, 2 in
/// [2^-24, 2^-23), 6 zeros; `times` as many. FP16 flushes 11 of the 20 at scale 1, and 1 at scale 2^5.
std::string histogram(int step, const std::string& tensor, const std::string& role, int times = 1) {
  const auto list = [&](std::vector<int> counts) {
    for (int& count : counts) count *= times;
    return Json(counts);
  };
  return Json{{"step", step},
              {"tensor", tensor},
              {"role", role},
              {"scale", 1.0},
              {"first_exponent", -30},
              {"counts", list({8, 0, 0, 0, 0, 4, 2})},
              {"pow2", list({1, 0, 0, 0, 0, 3, 0})},
              {"top", list({0, 0, 0, 0, 0, 0, 0})},
              {"subnormal_carry", list({0, 0, 0, 0, 0, 0, 0})},
              {"zeros", 6 * times},
              {"negative_zeros", 0},
              {"infinities", 0},
              {"nans", 0}}
             .dump() +
         "\n";
}

Json counters(const std::string& tensor, const std::string& role, double scale, int flushed,
              int elements = 20) {
  return {{"tensor", tensor}, {"role", role}, {"scale", scale}, {"elements", elements}, {"flushed", flushed}};
}

std::string step_line(int step, const std::vector<Json>& tensors) {
  return Json{{"step", step}, {"tensors", tensors}}.dump() + "\n";
}

constexpr const char* activation = "activation_gradient";
constexpr const char* weight = "weight_gradient";

TEST_CASE("a prediction is the baseline's first histogram at the arm's scale", "[prediction]") {
  const TemporaryFolder folder;
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "logits", activation) + histogram(1, "fc", weight) +
                                                histogram(2, "logits", activation, 9));
  folder.put("s1/seed0/metrics.jsonl",
             step_line(1, {counters("logits", activation, 1, 10), counters("fc", weight, 1, 2)}) +
                 step_line(2, {counters("logits", activation, 1, 20)}));
  folder.put("s32/seed0/metrics.jsonl",
             step_line(1, {counters("fc", weight, 32, 5), counters("unknown", weight, 32, 5)}));
  const Json all = predictions(folder);
  REQUIRE(all.size() == 3);
  CHECK(all[0]["arm"] == "s1");
  CHECK(all[0]["tensor"] == "logits");
  CHECK(all[0]["role"] == activation);
  CHECK(all[0]["scale"] == 1);
  CHECK(all[0]["elements"] == 20);
  CHECK(all[0]["predicted"] == 11.0 / 20);
  CHECK(all[0]["counted"] == 10.0 / 20);
  CHECK(all[1]["tensor"] == "fc");
  CHECK(all[1]["counted"] == 2.0 / 20);
  CHECK(all[2]["arm"] == "s32");
  CHECK(all[2]["tensor"] == "fc");
  CHECK(all[2]["scale"] == 32);
  CHECK(all[2]["predicted"] == 1.0 / 20);
  CHECK(all[2]["counted"] == 5.0 / 20);
}

TEST_CASE("predictions are shares of all elements, by role", "[prediction]") {
  const TemporaryFolder folder;
  // 11 of 20 are flushed at scale 1: of 20, 20 and 60 elements.
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "logits", activation) + histogram(1, "fc", weight) +
                                                histogram(1, "hidden", activation, 3));
  folder.put("s1/seed0/metrics.jsonl",
             step_line(1, {counters("logits", activation, 1, 10), counters("fc", weight, 1, 5),
                           counters("hidden", activation, 1, 15, 60)}));
  const std::string table = to_text(found(find_predictions, experiment(), {}, folder.path()), any_width);
  CHECK(table.find("predicted from the histograms of fp32 / counted") != std::string::npos);
  CHECK(table.find("\n  arm   nearest the loss: logits  activation gradients  weight gradients\n"
                   "  s1               55.0 / 50.0 %         55.0 / 31.2 %     55.0 / 25.0 %\n") !=
        std::string::npos);
}

TEST_CASE("seeds and casts of one tensor are counted together, each with its own histogram", "[prediction]") {
  const TemporaryFolder folder;
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "x", activation) + histogram(1, "x", activation, 3));
  folder.put("fp32/seed1/histograms.jsonl", histogram(1, "x", activation, 2));
  folder.put("s1/seed0/metrics.jsonl",
             step_line(1, {counters("x", activation, 1, 4), counters("x", activation, 1, 6, 60),
                           counters("x", activation, 1, 60, 60)}));  // a third cast, which FP32 did not have
  folder.put("s1/seed1/metrics.jsonl", step_line(1, {counters("x", activation, 1, 9, 40)}));
  folder.put("s1/seed2/metrics.jsonl", step_line(1, {counters("x", activation, 1, 20)}));  // not in FP32
  const Json all = predictions(folder);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["elements"] == 20 + 60 + 40);
  CHECK(all[0]["predicted"].get<double>() == Approx((11.0 + 33 + 22) / 120));
  CHECK(all[0]["counted"].get<double>() == Approx((4.0 + 6 + 9) / 120));
}

TEST_CASE("without records, or at a scale that is no power of two, nothing is predicted", "[prediction]") {
  const TemporaryFolder folder;
  CHECK(predictions(folder).empty());
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "x", activation));
  folder.put("s1/seed0/metrics.jsonl", step_line(1, {counters("x", activation, 3, 4)}));
  folder.put("s32/seed0/metrics.jsonl", R"({"step":1,"loss":2})");
  CHECK(predictions(folder).empty());
  folder.put("s1/seed0/metrics.jsonl", step_line(1, {counters("x", activation, 0, 4)}));
  CHECK(predictions(folder).empty());
}

TEST_CASE("records of a run in training end anywhere in a line", "[prediction]") {
  const TemporaryFolder folder;
  const std::string first = histogram(1, "x", activation), second = histogram(1, "fc", weight);
  folder.put("s1/seed0/metrics.jsonl",
             step_line(1, {counters("x", activation, 1, 4), counters("fc", weight, 1, 4)}) + R"({"step":)");
  for (std::size_t more = 0; more <= second.size(); ++more) {
    folder.put("fp32/seed0/histograms.jsonl", first + second.substr(0, more));
    CHECK(predictions(folder).size() == (more == second.size() ? 2 : 1));
  }
}

TEST_CASE("a record that is no JSON is refused with its file", "[prediction]") {
  const TemporaryFolder folder;
  folder.put("fp32/seed0/histograms.jsonl", "{\n");
  folder.put("s1/seed0/metrics.jsonl", "");
  check_says(message_of<InvalidArgument>([&] { (void)predictions(folder); }), {"histograms.jsonl: line 1"});
}

TEST_CASE("a record without a key, or with one of another type, is refused with file and line",
          "[prediction]") {
  const TemporaryFolder folder;
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "x", activation));
  const auto refusal = [&](const std::string& metrics) {
    folder.put("s1/seed0/metrics.jsonl", metrics);
    return message_of<InvalidArgument>([&] { (void)predictions(folder); });
  };
  Json without_role = counters("x", activation, 1, 4);
  without_role.erase("role");
  Json with_text = counters("x", activation, 1, 4);
  with_text["flushed"] = "4";
  for (const std::string& message :
       {refusal(step_line(1, {without_role})), refusal(step_line(1, {with_text})), refusal("[1]\n"),
        refusal("{\"step\": \"x\"}\n")}) {
    check_says(message, {"s1/seed0/metrics.jsonl: line 1: "});
    CHECK(message.find("json.exception") == std::string::npos);
  }
  folder.put("fp32/seed0/histograms.jsonl", histogram(1, "x", activation) + "{\"step\":1,\"tensor\":3}\n");
  check_says(refusal(step_line(1, {counters("x", activation, 1, 4)})), {"histograms.jsonl: line 2: "});
}

}  // namespace
}  // namespace halfscope::predictions_test
