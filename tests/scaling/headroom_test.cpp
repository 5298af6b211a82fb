// The headroom scaler: exactly as large as nothing overflows at, less its margin, and no overflow needed.
#include <halfscope/core/random.hpp>
#include <halfscope/scaling/scalers.hpp>

#include <cmath>
#include <deque>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::headroom_test {
namespace {

std::unique_ptr<LossScaler> headroom(const ScalerSettings& settings) {
  return make_scaler("headroom", settings);
}

/// The largest k with round(2^k max_abs) finite in FP16, by trying.
int limit_by_trying(double max_abs) {
  int k = 200;
  while (max_abs * std::ldexp(1.0, k) >= 65520) --k;
  return k;
}

TEST_CASE("headroom keeps the largest scale that leaves its margin over its history", "[scaling][headroom]") {
  constexpr std::size_t history = 6;
  constexpr int margin = 3;
  const auto scaler =
      headroom({{"history", history}, {"margin", margin}, {"initial_scale", 1}, {"max_scale", 0x1p100}});
  const RandomStream random{.seed = 5};
  std::deque<int> limits;
  for (std::uint64_t i = 0; i < 400; ++i) {
    // Also the numbers next to the limit itself.
    double max_abs = std::exp2(-40.0 + 12.0 * static_cast<double>(random.uniform(i)));
    if (i % 5 == 0)
      max_abs = (i % 10 == 0 ? 65504.0 : 65520.0) * std::ldexp(1.0, -40 - static_cast<int>(i % 7));
    const double scale = scaler->scale();
    REQUIRE(max_abs * scale < 65520);
    REQUIRE_FALSE(scaler->update({.finite = true, .max_abs = static_cast<float>(max_abs * scale)}));
    limits.push_back(limit_by_trying(static_cast<float>(max_abs * scale) / scale));
    if (limits.size() > history) limits.pop_front();
    const double wanted = std::ldexp(1.0, *std::min_element(limits.begin(), limits.end()) - margin);
    REQUIRE(scaler->scale() == (limits.size() < history ? std::min(1.0, wanted) : wanted));
  }
}

TEST_CASE("headroom: an overflow that was not foreseen widens the margin, good steps narrow it",
          "[scaling][headroom]") {
  // Weight gradients of 1, but something else overflows at 2^11 and more: the history says 2^(15 - 4).
  const auto scaler = headroom({{"history", 5}});
  std::vector<int> skipped;
  for (int i = 0; i < 900; ++i) {
    const bool overflow = scaler->scale() >= 0x1p11;
    if (scaler->update({.finite = !overflow, .max_abs = static_cast<float>(scaler->scale())}))
      skipped.push_back(i);
  }
  CHECK(skipped.size() <= 3);
  CHECK(skipped.back() < 20);
  CHECK(scaler->scale() == 0x1p10);
  for (int i = 0; i < 1100; ++i) {
    (void)scaler->update({.finite = true, .max_abs = static_cast<float>(scaler->scale())});
  }
  CHECK(scaler->scale() == 0x1p11);
}

TEST_CASE("headroom stays between floor and ceiling, and gradients of zero limit nothing",
          "[scaling][headroom]") {
  const auto scaler =
      headroom({{"history", 2}, {"initial_scale", 64}, {"min_scale", 16}, {"max_scale", 256}});
  for (int i = 0; i < 3; ++i) (void)scaler->update({.finite = true, .max_abs = 0});
  CHECK(scaler->scale() == 256);
  (void)scaler->update({.finite = true, .max_abs = 65504});
  CHECK(scaler->scale() == 16);
  for (int i = 0; i < 9; ++i) CHECK(scaler->update({.finite = false}));
  CHECK(scaler->scale() == 16);
  // One good step is enough to begin the count again.
  (void)scaler->update({.finite = true, .max_abs = 1});
  for (int i = 0; i < 9; ++i) CHECK(scaler->update({.finite = false}));
  check_says(message_of<RuntimeFailure>([&] { (void)scaler->update({.finite = false}); }),
             {"not a scaling problem", "scale of 16"});
}

}  // namespace
}  // namespace halfscope::headroom_test
