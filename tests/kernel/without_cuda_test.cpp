// A build without CUDA says so where CUDA is asked for.
#include <halfscope/kernel/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
namespace {

TEST_CASE("CUDA kernels refuse to run in a build without CUDA", "[kernel]") {
  check_says(message_of<RequestError>([] { round_cuda(nullptr, nullptr, 0, {}, {}, nullptr); }),
             {"built without CUDA"});
}

}  // namespace
}  // namespace halfscope
