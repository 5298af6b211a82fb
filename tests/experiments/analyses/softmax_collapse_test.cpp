// Shares of examples without a gradient, from records made by hand.
#include <nlohmann/json.hpp>

#include "tests/experiments/found.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::softmax_collapse_test {
namespace {

/// A gradient of 8 rows of 5 classes, so many of them 0.
std::string gradient(int step, const char* tensor, const char* role, int zeros) {
  return Json{{"step", step},
              {"tensor", tensor},
              {"role", role},
              {"scale", 1.0},
              {"first_exponent", -10},
              {"counts", {40 - zeros}},
              {"pow2", {0}},
              {"top", {0}},
              {"subnormal_carry", {0}},
              {"zeros", zeros},
              {"negative_zeros", 0},
              {"infinities", 0},
              {"nans", 0}}
             .dump() +
         "\n";
}

TEST_CASE("zeros of the first gradient of a step are examples that the softmax is sure of", "[after2018]") {
  const TemporaryFolder folder;
  const Experiment experiment{
      .name = "tiny", .varied = {}, .arms = {{"fp32", "", {}}, {"bf16", "", {}}, {"none", "", {}}}};
  for (const char* arm : {"fp32", "bf16"}) {
    for (const int seed : {0, 1}) {
      put_run(folder, arm, seed);
      const std::string run = std::string(arm) + "/seed" + std::to_string(seed) + "/";
      folder.put(run + "config.json",
                 Json{{"format_version", 1}, {"dataset", "modular_sums"}, {"modulus", 5}}.dump());
      const int zeros = arm == std::string("bf16") ? 6 + seed : 0;
      folder.put(run + "histograms.jsonl", gradient(1, "output.weight", "weight_gradient", 7) +
                                               gradient(1, "output", "activation_gradient", 0) +
                                               gradient(1, "norm", "activation_gradient", 9) +
                                               gradient(50, "output", "activation_gradient", zeros) +
                                               gradient(50, "norm", "activation_gradient", 9));
    }
  }
  const Json rows = found(find_softmax_collapse, experiment, {}, folder.path()).values;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("last").get<double>() == 0);
  CHECK(rows[1].at("first_step") == 1);
  CHECK(rows[1].at("first").get<double>() == 0);
  CHECK(rows[1].at("last_step") == 50);
  CHECK(rows[1].at("last").get<double>() == Approx(13.0 / 16));
}

TEST_CASE("without records of gradients nothing is said of collapse", "[after2018]") {
  const TemporaryFolder folder;
  put_run(folder, "fp32", 0);
  folder.put("fp32/seed0/config.json",
             Json{{"format_version", 1}, {"dataset", "modular_sums"}, {"modulus", 5}}.dump());
  const AnalysisResult finding = found(
      find_softmax_collapse, {.name = "tiny", .varied = {}, .arms = {{"fp32", "", {}}}}, {}, folder.path());
  CHECK(finding.sections.empty());
}

}  // namespace
}  // namespace halfscope::softmax_collapse_test
