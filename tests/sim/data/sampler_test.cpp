// The order of the minibatches: complete, uniform, and the same however it is asked for.
#include "sim/data/sampler.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::sampler_test {
namespace {

std::vector<std::int64_t> step_of(Sampler& sampler, std::int64_t step) {
  const auto indices = sampler.indices(step);
  return {indices.begin(), indices.end()};
}

TEST_CASE("an epoch visits each example once, less the incomplete batch", "[sampler]") {
  struct Case {
    std::int64_t examples, batch, steps;
  };
  for (const auto& [examples, batch, steps] :
       {Case{1, 1, 1}, {7, 7, 1}, {31, 4, 7}, {60'000, 64, 937}, {257, 1, 257}}) {
    Sampler sampler(examples, batch, 0);
    REQUIRE(sampler.steps_per_epoch() == steps);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int64_t> seen;
      for (std::int64_t step = 0; step < steps; ++step) {
        const auto indices = sampler.indices(epoch * steps + step);
        REQUIRE(indices.size() == static_cast<std::size_t>(batch));
        seen.insert(seen.end(), indices.begin(), indices.end());
      }
      std::sort(seen.begin(), seen.end());
      CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
      CHECK(seen.front() >= 0);
      CHECK(seen.back() < examples);
    }
  }
}

TEST_CASE("a step's batch does not depend on the steps before it", "[sampler]") {
  Sampler forward(100, 8, 3);
  for (std::int64_t step = 0; step < 50; ++step) {
    Sampler resumed(100, 8, 3);
    CHECK(step_of(resumed, step) == step_of(forward, step));
  }
  const auto late = step_of(forward, 1'000'000);
  static_cast<void>(forward.indices(0));
  CHECK(step_of(forward, 1'000'000) == late);
}

TEST_CASE("the order is Fisher-Yates over Philox, as computed apart in Python", "[sampler]") {
  Sampler sampler(10, 10, 0);
  CHECK(step_of(sampler, 0) == std::vector<std::int64_t>{5, 7, 2, 0, 8, 9, 4, 1, 3, 6});
  CHECK(step_of(sampler, 1) == std::vector<std::int64_t>{0, 5, 1, 3, 6, 7, 4, 8, 9, 2});
}

TEST_CASE("a batch of neighbours begins anywhere, a function of seed and step", "[sampler]") {
  Sampler sampler(10, 4, 5, BatchOrder::neighbours);
  std::vector<int> starts(10, 0);
  for (std::int64_t step = 0; step < 700; ++step) {
    const std::vector<std::int64_t> batch = step_of(sampler, step);
    REQUIRE(batch.size() == 4);
    for (std::size_t i = 1; i < 4; ++i) CHECK(batch[i] == batch[0] + static_cast<std::int64_t>(i));
    ++starts[static_cast<std::size_t>(batch[0])];
    Sampler resumed(10, 4, 5, BatchOrder::neighbours);
    CHECK(step_of(resumed, step) == batch);
  }
  // Each of 7 starts 100 times, give or take 5 standard deviations of 9.3.
  for (std::size_t start = 0; start < 7; ++start) CHECK(std::abs(starts[start] - 100) < 47);
  for (std::size_t start = 7; start < 10; ++start) CHECK(starts[start] == 0);
  Sampler whole(4, 4, 5, BatchOrder::neighbours), other(10, 4, 6, BatchOrder::neighbours);
  CHECK(step_of(whole, 3) == std::vector<std::int64_t>{0, 1, 2, 3});
  bool differs = false;
  for (std::int64_t step = 0; step < 20; ++step) differs |= step_of(other, step) != step_of(sampler, step);
  CHECK(differs);
}

TEST_CASE("seeds and epochs have orders of their own", "[sampler]") {
  Sampler zero(1000, 1000, 0);
  Sampler one(1000, 1000, 1);
  Sampler high(1000, 1000, std::uint64_t{1} << 32);
  CHECK(step_of(zero, 0) != step_of(one, 0));
  CHECK(step_of(zero, 0) != step_of(high, 0));
  CHECK(step_of(zero, 0) != step_of(zero, 1));
  CHECK(step_of(one, 0) != step_of(zero, 1));
}

TEST_CASE("the orders of four examples are equally likely", "[sampler]") {
  constexpr int epochs = 24'000;
  Sampler sampler(4, 4, 5);
  std::array<int, 256> counts{};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto order = sampler.indices(epoch);
    ++counts.at(static_cast<std::size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]));
  }
  double chi_squared = 0;
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    chi_squared += (count - epochs / 24.0) * (count - epochs / 24.0) / (epochs / 24.0);
  }
  CHECK(orders == 24);
  CHECK(chi_squared < 49.7);  // 23 degrees of freedom: exceeded by chance once in 1000
}

TEST_CASE("a batch that does not fit the data is refused", "[sampler]") {
  const auto refusal = [](std::int64_t examples, std::int64_t batch) {
    return message_of<InvalidArgument>([&] { Sampler(examples, batch, 0); });
  };
  check_says(refusal(10, 11), {"batch size 11", "1 to 10"});
  check_says(refusal(10, 0), {"batch size 0", "1 to 10"});
  check_says(refusal(10, -3), {"batch size -3"});
  check_says(refusal(0, 1), {"0 examples"});
  check_says(refusal(std::int64_t{1} << 32, 1), {"4294967296 examples"});
  Sampler sampler(10, 2, 0);
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(sampler.indices(-1)); }), {"step -1"});
}

}  // namespace
}  // namespace halfscope::sampler_test
