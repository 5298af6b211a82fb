// Accumulation models: their names, and sums whose result is known.
#include <halfscope/arithmetic/accumulate.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope {
namespace {

TEST_CASE("every listed accumulation model is read and printed under its name", "[accumulate]") {
  for (const auto& entry : accumulate_models)
    CHECK(to_string(parse_accumulate_model(entry.name)) == entry.name);
  CHECK(parse_accumulate_model("bf16_pairwise") == AccumulateModel{bf16, AccumulateOrder::pairwise, 0});
}

TEST_CASE("a wrong accumulation model is named with the nearest right one", "[accumulate]") {
  for (const char* wrong : {"fp16_sequental", "sequential", "fp16_", "", "fp17_sequential", "fp16_chunked"}) {
    const std::string message = message_of<RequestError>([&] { (void)parse_accumulate_model(wrong); });
    CHECK(message.find("did you mean 'fp16_") + message.find("did you mean 'fp32_") != 2 * std::string::npos);
  }
  for (const char* chunk :
       {"fp16_chunked(0)", "fp16_chunked(-4)", "fp16_chunked(x)", "fp16_chunked(9999999)"}) {
    CHECK(message_of<RequestError>([&] { (void)parse_accumulate_model(chunk); }).find("chunk of 1 to") !=
          std::string::npos);
  }
}

TEST_CASE("sums of uniform numbers behave as FP16 accumulators do", "[accumulate][known]") {
  // 50,176 positions of uniform [0, 1): the sequential FP16 sum sticks where the numbers are below half its
  // ulp.
  const std::vector<float> terms = uniform_floats(50176, 0, 1, 9);
  const float exact = accumulate(terms, parse_accumulate_model("fp32_pairwise"));
  CHECK(exact == Approx(25088).epsilon(0.01));
  CHECK(accumulate(terms, parse_accumulate_model("fp16_sequential")) == 2048.0f);
  CHECK(accumulate(terms, parse_accumulate_model("fp16_pairwise")) == Approx(exact).epsilon(2e-3));
  CHECK(accumulate(terms, parse_accumulate_model("fp16_chunked(64)")) == Approx(exact).epsilon(2e-3));
  CHECK(accumulate(terms, parse_accumulate_model("fp32_sequential")) == Approx(exact).epsilon(1e-4));
}

TEST_CASE("the tree of a pairwise sum is the documented one", "[accumulate][known]") {
  // In FP16, 2048 + 1 is 2048: which ones survive tells which adds were made.
  const AccumulateModel pairwise{fp16, AccumulateOrder::pairwise, 0};
  CHECK(accumulate(std::vector<float>{2048, 1, 1, 1}, pairwise) == 2050.0f);
  CHECK(accumulate(std::vector<float>{1, 1, 2048, 1}, pairwise) == 2050.0f);
  CHECK(accumulate(std::vector<float>{1, 1, 1, 1, 2048}, pairwise) == 2052.0f);
  CHECK(accumulate(std::vector<float>{}, pairwise) == 0.0f);
}

}  // namespace
}  // namespace halfscope
