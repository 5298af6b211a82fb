// Divisions of data-parallel training: the frameworks' factors, and their names.
#include <halfscope/arithmetic/gradient_division.hpp>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::gradient_division_test {
namespace {

TEST_CASE("1/N of ncclAvg is rounded to FP16", "[all_reduce]") {
  const auto constant = [](std::int64_t ranks) {
    return division_steps(parse_gradient_division("nccl_avg"), ranks, fp16).before.constant;
  };
  CHECK(constant(2) == 0.5f);
  CHECK(constant(3) == 0x1.554p-2f);
  CHECK(constant(7) == 0x1.248p-3f);
  CHECK(constant(10) == 0x1.998p-4f);
  CHECK(constant(1000) == 0x1.064p-10f);
  CHECK(constant(16384) == 0x1p-14f);
  CHECK(constant(40000) == 0x1.a3p-16f);
  for (const std::int64_t ranks : {3, 6, 24, 48, 96, 1536})
    CHECK(constant(ranks) * static_cast<float>(ranks) - 1 == Approx(-2.44e-4).epsilon(1e-2));
  CHECK(constant(1000) * 1000 - 1 == Approx(4.0e-4).margin(1e-5));
  CHECK(constant(40000) * 40000 - 1 == Approx(-1.0e-3).epsilon(0.1));
}

TEST_CASE("divisions are the frameworks'", "[all_reduce]") {
  const auto steps = [](const char* rule, std::int64_t ranks) {
    return division_steps(parse_gradient_division(rule), ranks, fp16);
  };
  const std::vector<std::pair<std::int64_t, float>> roots{
      {2, 2},  {3, 2},  {4, 2},   {6, 4},     {7, 2},     {8, 4},    {12, 4},
      {16, 4}, {64, 8}, {96, 16}, {1000, 16}, {1024, 32}, {4096, 64}};
  for (const auto& [ranks, factor] : roots) {
    INFO(ranks);
    const DivisionSteps split = steps("fsdp", ranks);
    CHECK(split.before == DivisionStep{DivisionStep::Kind::divide, factor});
    const float rest = static_cast<float>(ranks) / factor;
    CHECK(split.after == (rest == 1 ? DivisionStep{} : DivisionStep{DivisionStep::Kind::divide, rest}));
  }
  CHECK(steps("deepspeed", 3).before == DivisionStep{});
  CHECK(steps("deepspeed", 3).after == DivisionStep{DivisionStep::Kind::multiply, 1.0f / 3});
  CHECK(steps("2", 3).before == DivisionStep{DivisionStep::Kind::multiply, 0.5f});
  CHECK(steps("2", 3).after == DivisionStep{DivisionStep::Kind::multiply, 2.0f / 3});
  CHECK(steps("sum", 3).after == DivisionStep{});
  for (const DivisionRule& rule : division_rules) {
    CHECK(to_string(parse_gradient_division(rule.name)) == rule.name);
    CHECK(steps(std::string(rule.name).c_str(), 1).before == DivisionStep{});
  }
}

TEST_CASE("divisions have names", "[all_reduce]") {
  CHECK(to_string(parse_gradient_division("0.5")) == "0.5");
  check_says(message_of<InvalidArgument>([] { (void)parse_gradient_division("dpp"); }),
             {"did you mean 'ddp'"});
  for (const char* bad : {"0", "-1", "1x", "inf", "nan", "1e400"})
    check_says(message_of<InvalidArgument>([&] { (void)parse_gradient_division(bad); }), {"positive number"});
}

}  // namespace
}  // namespace halfscope::gradient_division_test
