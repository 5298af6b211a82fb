// Updates of an FP32 run on weights of fewer bits, at its own learning rate and others.
#include "sim/train/what_if_updates.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include <halfscope/core/random.hpp>

#include "sim/train/run.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::what_if_updates_test {
namespace {

/// `x` to the nearest multiple of the spacing of normal numbers with so many mantissa bits, ties to even.
double nearest(double x, int mantissa_bits) {
  if (x == 0) return 0;
  const double spacing = std::ldexp(1.0, std::ilogb(x) - mantissa_bits);
  return spacing * std::nearbyint(x / spacing);
}

struct Expected {
  std::int64_t lost = 0;
  double along = 0, square = 0;
};

Expected expected_of(const Array& before, const Array& after, int mantissa_bits, int rate_log2) {
  Expected sums;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double stored = nearest(before[i], mantissa_bits);
    const double update = std::ldexp(double{after[i] - before[i]}, rate_log2);
    const double applied = nearest(stored + update, mantissa_bits) - stored;
    sums.lost += update != 0 && applied == 0 ? 1 : 0;
    sums.along += applied * update;
    sums.square += update * update;
  }
  return sums;
}

TEST_CASE("multiplied updates on rounded weights are those of plain arithmetic", "[updates][what_if]") {
  constexpr std::size_t weights = 4096;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const RandomStream draws{.seed = seed, .site = 5};
    ParameterStore store;
    Parameter& w = store.add("w", Array::zeros({weights}));
    for (std::size_t i = 0; i < weights; ++i)
      w.master[i] = std::exp2(4 * draws.uniform(i) - 4) * (i % 2 == 0 ? 1.0f : -1.0f);
    const Array before = w.master.to(Device::cpu);
    std::vector<WhatIfUpdates> rows;
    UpdateQuestions questions({fp16, bf16}, &rows);
    questions.before(w);
    for (std::size_t i = 0; i < weights; ++i) w.master[i] += std::exp2(-8 * draws.uniform(weights + i) - 6);
    questions.after(w);
    REQUIRE(rows.size() == 2 * (most_rate_log2 - least_rate_log2 + 1));
    for (const WhatIfUpdates& row : rows) {
      INFO(row.format << " 2^" << row.rate_log2);
      const Expected expected = expected_of(before, w.master, row.format == "fp16" ? 10 : 7, row.rate_log2);
      CHECK(row.lost == expected.lost);
      CHECK(row.projection.along == Approx(expected.along).epsilon(1e-9));
      CHECK(row.projection.square == Approx(expected.square).epsilon(1e-6));
    }
  }
}

TEST_CASE("a run's summary has shares by rate, which rise with it", "[what_if][run]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  config.policy = "fp32";
  CHECK_FALSE(to_json(parsed(config).config).contains("what_if_weights"));
  config.what_if_weights = "fp16";
  const RunFolder folder(temporary.path(), {"experiment", "arm", 0});
  run_training(parsed(config), small_dataset, folder, ignore);
  const Json summary = read_json(folder.path() / "summary.json");
  const Json& rows = summary.at("what_if_updates");
  REQUIRE(rows.size() == most_rate_log2 - least_rate_log2 + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("format") == "fp16");
    if (i > 0) CHECK(rows[i].at("lost").get<double>() <= rows[i - 1].at("lost").get<double>());
    if (rows[i].at("rate_log2") == 0)
      CHECK(rows[i].at("lost").get<double>() ==
            Approx(summary.at("lost_updates").get<double>()).margin(0.02));
  }
  CHECK(rows.back().at("applied").get<double>() == Approx(1).margin(0.05));
  CHECK(rows.front().at("applied").get<double>() < 0.1);
}

TEST_CASE("formats of asked weights are known ones, each named once", "[what_if]") {
  CHECK(parse_weight_formats("").empty());
  CHECK(parse_weight_formats("fp16,bf16") == std::vector{fp16, bf16});
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_weight_formats(text); });
  };
  check_says(message("fp16,fp16"), {"fp16", "twice"});
  check_says(message("fp17"), {"fp17"});
  CHECK_FALSE(message("fp16,").empty());
}

}  // namespace
}  // namespace halfscope::what_if_updates_test
