// Times of two things that ran in turn.
#include "experiments/cli/bench/bench.hpp"

#include <array>

#include "tests/support/catch.hpp"

namespace halfscope::bench_times_test {
namespace {

TEST_CASE("the ratio is the median of neighbours, the times are the least", "[bench]") {
  // The machine is half as fast at the second sample.
  const std::array ours{2.0, 4.0, 2.5}, others{1.0, 2.0, 1.5};
  const Times times = times_of(ours, others);
  CHECK(times.ours == 2.0);
  CHECK(times.others == 1.0);
  CHECK(times.ratio == 0.5);
}

}  // namespace
}  // namespace halfscope::bench_times_test
