// A build without CUDA says so where a native product is asked for.
#include <halfscope/kernel/gemm/gemm_cublas.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::gemm_native_simulated_test {
namespace {

TEST_CASE("native products refuse to run in a build without CUDA", "[kernel][gemm]") {
  check_says(message_of<InvalidArgument>([] { gemm_cublas({}, nullptr); }),
             {"gemm_cublas", "built without CUDA"});
  check_says(message_of<InvalidArgument>([] { gemm_ordered({}, nullptr); }),
             {"gemm_ordered", "built without CUDA"});
}

}  // namespace
}  // namespace halfscope::gemm_native_simulated_test
