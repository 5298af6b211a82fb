// Rules of operands: their texts, the layer that they mean, and what they refuse.
#include <halfscope/policy/policy.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::operands_test {
namespace {

std::string printed(const LayerOperands& operands) {
  std::string text;
  for (const OperandPlace& place : operand_places)
    text += (text.empty() ? "" : " ") + (operands[place] ? to_string(*operands[place]) : std::string("-"));
  return text;
}

std::string of_layer(const char* rules, OperationId operation, const char* layer) {
  return printed(operands_of(parse_operand_rules(rules), operation, layer));
}

TEST_CASE("rules of operands come back from their texts", "[policy]") {
  for (const char* text :
       {"*=mxfp8_e4m3", "forward.right=nvfp4_16x16", "weight_gradient=nvfp4/stochastic+hadamard@encoder*",
        "*=role@output", "matmul.forward=mxfp8_e4m3", "linear=mxfp6_e2m3",
        "conv2d.data_gradient.left=fp8_e5m2+current",
        "forward.left=fp8_e4m3+delayed(history=16, margin=1, most_recent), data_gradient=nvfp4",
        "forward=block(fp8_e4m3, 1x64, e8m0/rceil)@fc*"}) {
    INFO(text);
    CHECK(to_string(parse_operand_rules(text)) == text);
  }
  CHECK(parse_operand_rules("").empty());
  CHECK(to_string(parse_operand_rules(" * = fp8_e4m3/saturate + delayed( max ,history=1024 ) @ fc ")) ==
        "*=fp8_e4m3+delayed@fc");
  for (const NamedPolicy& policy : policy_table) {
    INFO(policy.name);
    const std::vector<OperandRule> rules = policy.make().operands;
    CHECK(parse_operand_rules(to_string(rules)) == rules);
  }
}

TEST_CASE("of two rules that apply the later holds, in the layers and products that it names", "[policy]") {
  const char* rules =
      "*=mxfp8_e4m3, forward.right=nvfp4_16x16@a*, data_gradient=mxfp4@ab, *=role@output, "
      "matmul.weight_gradient.left=mxfp4";
  CHECK(of_layer(rules, "linear", "b") ==
        "mxfp8_e4m3 mxfp8_e4m3 mxfp8_e4m3 mxfp8_e4m3 mxfp8_e4m3 mxfp8_e4m3");
  CHECK(of_layer(rules, "conv2d", "ab") == "mxfp8_e4m3 nvfp4_16x16 mxfp4 mxfp4 mxfp8_e4m3 mxfp8_e4m3");
  CHECK(of_layer(rules, "linear", "output") == "- - - - - -");
  CHECK(of_layer(rules, "linear", "self.output") != "- - - - - -");
  CHECK(of_layer(rules, "matmul", "b") == "- - - - mxfp4 -");
  CHECK(of_layer(rules, "embedding", "b") == "- - - - - -");
}

TEST_CASE("a recipe says what each operand is", "[policy]") {
  const auto of = [](const char* name, const char* layer) {
    return printed(operands_of(find_in_table("policy", name, policy_table).make().operands, "linear", layer));
  };
  CHECK(of("nvfp4", "ff") ==
        "nvfp4 nvfp4_16x16 nvfp4/stochastic nvfp4_16x16 nvfp4/stochastic+hadamard nvfp4+hadamard");
  CHECK(of("nvfp4", "output") == "- - - - - -");
  CHECK(of("fp8_delayed", "ff") ==
        "fp8_e4m3+delayed fp8_e4m3+delayed fp8_e5m2+delayed fp8_e4m3+delayed fp8_e5m2+delayed "
        "fp8_e4m3+delayed");
  CHECK(of("fp8_deepseek", "ff") == "fp8_1x128 fp8_128x128 fp8_1x128 fp8_128x128 fp8_1x128 fp8_1x128");
}

std::string refusal(const char* rules) {
  return message_of<InvalidArgument>([&] { (void)parse_operand_rules(rules); });
}

TEST_CASE("a wrong rule is refused in one line that says what would be right", "[policy]") {
  check_says(refusal("mxfp8"), {"'mxfp8'", "OPERANDS=FORMAT"});
  check_says(refusal("forwards=mxfp8"), {"'forwards'", "data_gradient", "left or right"});
  check_says(refusal("left=mxfp8"), {"'left'", "PRODUCT"});
  check_says(refusal("relu.forward=mxfp8"), {"'relu.forward'", "linear"});
  check_says(refusal("lstm.forward=mxfp8"), {"'lstm.forward'", "linear"});
  check_says(refusal("forward=mxfp9"), {"mxfp9"});
  check_says(refusal("forward=nvfp4+hadamar"), {"'hadamar'", "hadamard, current or delayed"});
  check_says(refusal("forward=mxfp8+current"), {"mxfp8_e4m3", "without blocks"});
  check_says(refusal("forward=bf16+delayed"), {"bf16", "8 bits"});
  check_says(refusal("forward=fp8_e4m3+delayed(history=0)"), {"history = '0'", "1 to 1048576"});
  check_says(refusal("forward=fp8_e4m3+delayed(recent)"), {"'recent'", "most_recent"});
  check_says(refusal("forward=mxfp8@"), {"glob"});
  check_says(message_of<InvalidArgument>(
                 [] { (void)of_layer("weight_gradient.left=nvfp4+hadamard", "linear", "ff"); }),
             {"layer ff", "weight_gradient.left", "weight_gradient.right"});
}

TEST_CASE("products round no operand that has a format of its own", "[policy]") {
  PrecisionPolicy policy = find_in_table("policy", "mxfp8", policy_table).make();
  CHECK(to_string(default_products(policy)) == "fp32_fused");
  CHECK_NOTHROW(check_operand_sums(policy));
  policy.products = parse_accumulate_model("bf16_tensor_core(hopper)");
  check_says(message_of<InvalidArgument>([&] { check_operand_sums(policy); }),
             {"bf16_tensor_core(hopper)", "fp32_fused"});
  CHECK(to_string(default_products(policy)) == "fp32_fused");
  CHECK(to_string(default_products(find_in_table("policy", "fp8_deepseek", policy_table).make())) ==
        "fp32_chunked(128)");
  CHECK(in_fp32(policy).operands.empty());
}

}  // namespace
}  // namespace halfscope::operands_test
