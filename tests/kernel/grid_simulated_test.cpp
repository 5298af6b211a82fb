// The bound on a launch's blocks, which the host checks: no machine has memory for what would pass it.
#include <halfscope/kernel/detail/blocks.cuh>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::grid_simulated_test {
namespace {

/// A block that must not run.
struct Unreachable {
  static constexpr int threads = 1;
  struct Shared {};
  struct State {};
  void fill(const cuda::BlockThread&, std::int64_t, Shared&) const {}
  void use(const cuda::BlockThread&, std::int64_t, const Shared&, State&) const {}
  void finish(const cuda::BlockThread& here, State&) const { FAIL("block " << here.block << " ran"); }
};

TEST_CASE("more blocks than a launch has are refused, not cut off to 32 bits", "[kernel][launch]") {
  constexpr std::int64_t most = 2147483647;
  CHECK(cuda::grid_of(1, "gemm") == 1);
  CHECK(cuda::grid_of(most, "gemm") == most);
  for (const std::int64_t blocks : {most + 1, 2 * most + 3, std::int64_t{1} << 44}) {
    const std::string message =
        message_of<InvalidArgument>([&] { cuda::for_each_block(blocks, 1, Unreachable{}, "gemm"); });
    check_says(message, {"gemm", std::to_string(blocks), "2^31 - 1"});
  }
}

}  // namespace
}  // namespace halfscope::grid_simulated_test
