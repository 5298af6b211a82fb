// Accumulation models: their names, and sums whose result is known.
#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/format/round.hpp>

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::accumulate_test {
namespace {

TEST_CASE("every listed accumulation model is read and printed under its name", "[accumulate]") {
  for (const auto& entry : accumulate_models)
    CHECK(to_string(parse_accumulate_model(entry.name)) == entry.name);
  for (const auto& entry : cpu_product_models)
    CHECK(to_string(parse_accumulate_model(entry.name)) == entry.name);
  CHECK(parse_accumulate_model("bf16_pairwise") == AccumulateModel{bf16, AccumulateOrder::pairwise, 0});
}

TEST_CASE("a wrong accumulation model is named with the nearest right one", "[accumulate]") {
  for (const char* wrong : {"fp16_sequental", "sequential", "fp16_", "fp17_sequential", "fp16_chunked"}) {
    const std::string message = message_of<InvalidArgument>([&] { (void)parse_accumulate_model(wrong); });
    CHECK(message.find("did you mean 'fp16_") + message.find("did you mean 'fp32_") != 2 * std::string::npos);
  }
  for (const char* chunk :
       {"fp16_chunked(0)", "fp16_chunked(-4)", "fp16_chunked(x)", "fp16_chunked(9999999)"}) {
    CHECK(message_of<InvalidArgument>([&] { (void)parse_accumulate_model(chunk); }).find("chunk of 1 to") !=
          std::string::npos);
  }
}

TEST_CASE("a tensor core is named by its generation, and by its operands unless they are fp16",
          "[accumulate]") {
  const AccumulateModel model = parse_accumulate_model("bf16_tensor_core(ampere)");
  CHECK(model.format == bf16);
  CHECK(model.core == TensorCore{TensorCoreGeneration::ampere});
  CHECK(to_string(model) == "bf16_tensor_core(ampere)");
  CHECK(to_string(parse_accumulate_model("fp16_tensor_core(hopper)")) == "tensor_core(hopper)");
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_accumulate_model(text); });
  };
  CHECK(message("tensor_core(hoper)").find("did you mean 'hopper'") != std::string::npos);
  CHECK(message("tensor_core(hopper").find("tensor core ''") != std::string::npos);
  CHECK(message("tensor_core").find("tensor_core(") != std::string::npos);
  CHECK(message("bf16_tensor_core(volta)").find("no products of bf16") != std::string::npos);
}

TEST_CASE("a tensor core's sums are promoted after whole steps", "[accumulate]") {
  const AccumulateModel model = parse_accumulate_model("fp8_e4m3_tensor_core(hopper,promote=64)");
  CHECK(model.chunk == 64);
  CHECK(to_string(model) == "fp8_e4m3_tensor_core(hopper, promote=64)");
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_accumulate_model(text); });
  };
  check_says(message("fp8_e4m3_tensor_core(hopper, promote=48)"),
             {"48 terms", "multiple of the 32 products"});
  check_says(message("tensor_core(hopper, promote=0)"), {"give promote=N of 1 to 1048576 terms"});
  check_says(message("tensor_core(hopper, promote=x)"), {"give promote=N"});
  check_says(message("tensor_core(hopper, promotes=128)"), {"promote=128"});
}

TEST_CASE("a matrix core is named by its generation, and by its operands unless they are fp16",
          "[accumulate]") {
  const AccumulateModel model = parse_accumulate_model("bf16_matrix_core(cdna2_1k)");
  CHECK(model.format == bf16);
  CHECK(model.matrix_core == MatrixCoreGeneration::cdna2_1k);
  CHECK(to_string(model) == "bf16_matrix_core(cdna2_1k)");
  CHECK(to_string(parse_accumulate_model("fp16_matrix_core(cdna1)")) == "matrix_core(cdna1)");
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_accumulate_model(text); });
  };
  check_says(message("matrix_core(cdna4)"), {"unknown matrix core 'cdna4'", "cdna3"});
  check_says(message("matrix_core(cdna2_1k)"), {"no products of fp16", "give one of bf16"});
  check_says(message("fp16_matrix_core"), {"unknown order"});
  CHECK_THROWS_AS(accumulate(std::vector<float>{1}, model), InvalidArgument);
  // Four products and a small c: exact, and rounded once.
  const std::vector<float> a{1, 0x1p-12f, 0x1p-12f, 0}, b{1, 0x1p-12f, 0x1p-13f, 0};
  CHECK(accumulate_products_from(0x1p-26f, a, b, parse_accumulate_model("matrix_core(cdna1)")) ==
        1 + 0x1p-23f);
  CHECK(accumulate_products_from(0x1p-26f, a, b, parse_accumulate_model("matrix_core(cdna2)")) == 1.0f);
}

TEST_CASE("a tensor core may have constants of its own", "[accumulate]") {
  const auto printed = [](const char* text) { return to_string(parse_accumulate_model(text)); };
  for (const char* name :
       {"tensor_core(products=16, bits=25)", "bf16_tensor_core(products=5, bits=9, zero=-40)",
        "fp8_e4m3_tensor_core(products=64, bits=48, result=e8m13/toward_zero, promote=128)",
        "tensor_core(products=1, bits=1, zero=127, result=fp16)",
        "tensor_core(products=16, bits=25, result=fp32)"})
    CHECK(printed(name) == name);
  CHECK(printed("fp16_tensor_core(bits=25,products=16,zero=-133,result=fp32/toward_zero)") ==
        "tensor_core(products=16, bits=25)");
  const auto message = [](const std::string& arguments) {
    return message_of<InvalidArgument>(
        [&] { (void)parse_accumulate_model("tensor_core(" + arguments + ")"); });
  };
  check_says(message("products=16"), {"give tensor_core(products=16, bits=25"});
  check_says(message("products=0, bits=25"), {"give tensor_core(products=16, bits=25"});
  check_says(message("products=16, bits=25, width=3"), {"give tensor_core(products=16, bits=25"});
  check_says(message("products=65, bits=25"), {"products lie between 1 and 64, not 65"});
  check_says(message("products=16, bits=49"), {"bits lie between 1 and 48, not 49"});
  check_says(message("products=16, bits=25, zero=128"), {"zero exponents lie between -300 and 127, not 128"});
  check_says(message("products=16, bits=2.5"), {"give bits=N, a whole number"});
  check_says(message("products=16, bits=25, result=fp8_e4m3"), {"IEEE 754's specials", "fp8_e4m3"});
  check_says(message("products=16, bits=25, result=fp16/up"), {"toward_zero or nearest_even, not up"});
  check_says(message("products=16, bits=25, result=fp16/saturate"), {"without saturate"});
  check_says(message("products=16, bits=25, promote=24"), {"24", "multiple of the 16"});
  check_says(message("products=16, bits=25, result=fp16, promote=32"), {"FP32", "fp16"});
}

TEST_CASE("a tensor core with a generation's constants has its sums", "[accumulate]") {
  struct Twin {
    const char *own, *generation;
  };
  const std::vector<float> a = uniform_floats(101, -2, 2, 1), b = uniform_floats(101, -2, 2, 2);
  for (const Twin& twin :
       {Twin{"tensor_core(products=4, bits=23)", "tensor_core(volta)"},
        Twin{"tensor_core(products=16, bits=25)", "tensor_core(hopper)"},
        Twin{"fp8_e4m3_tensor_core(products=32, bits=13, zero=-133, result=e8m13/toward_zero)",
             "fp8_e4m3_tensor_core(hopper)"},
        Twin{"bf16_tensor_core(products=8, bits=24)", "bf16_tensor_core(ampere)"}}) {
    INFO(twin.own);
    const float expected = accumulate_products(a, b, parse_accumulate_model(twin.generation));
    CHECK(accumulate_products(a, b, parse_accumulate_model(twin.own)) == expected);
  }
  // FP16 sums, as `calc dot --output fp16` has them of a generation.
  const AccumulateModel half = parse_accumulate_model("tensor_core(products=16, bits=25, result=fp16)");
  std::vector<float> x = a, y = b;
  for (std::vector<float>* values : {&x, &y}) {
    for (float& value : *values) value = round(value, {.format = fp16});
  }
  CHECK(accumulate_products(a, b, half) == dot(x, y, 0, tensor_core_step({}, fp16, fp16)));
  CHECK(accumulate_products_from(1 + 0x1p-12f, {}, {}, half) == 1.0f);
}

TEST_CASE("a promoted sum keeps what the tensor core cuts off", "[accumulate][known]") {
  // 16 sums of 32 products 2^-14 beside 1: each is cut off 13 bits below 1, all together are 2^-5.
  std::vector<float> a(17 * 32, 0x1p-7f), b(17 * 32, 0x1p-7f);
  a[0] = b[0] = 1;
  std::fill(a.begin() + 1, a.begin() + 32, 0.0f);
  CHECK(accumulate_products(a, b, parse_accumulate_model("fp8_e4m3_tensor_core(hopper)")) == 1.0f);
  const AccumulateModel promoted = parse_accumulate_model("fp8_e4m3_tensor_core(hopper, promote=32)");
  CHECK(accumulate_products(a, b, promoted) == 1 + 0x1p-5f);
  CHECK(accumulate_products_from(0x1p24f, a, b, promoted) == 0x1p24f);
  CHECK(accumulate_products({}, {}, promoted) == 0.0f);
}

TEST_CASE("products are rounded once each; a tensor core's operands first", "[accumulate][known]") {
  const std::vector<float> a{2049, 1}, b{1, 1};
  CHECK(accumulate_products(a, b, parse_accumulate_model("fp32_sequential")) == 2050.0f);
  CHECK(accumulate_products(a, b, parse_accumulate_model("fp16_sequential")) == 2048.0f);
  CHECK(accumulate_products(a, b, parse_accumulate_model("tensor_core(hopper)")) == 2049.0f);
  CHECK_THROWS_AS(accumulate(a, parse_accumulate_model("tensor_core(hopper)")), InvalidArgument);
}

TEST_CASE("Kahan's compensation keeps what a sequential sum loses", "[accumulate][known]") {
  std::vector<float> terms(1001, 0x1p-25f);
  terms[0] = 1;
  CHECK(accumulate(terms, parse_accumulate_model("fp32_sequential")) == 1.0f);
  CHECK(accumulate(terms, parse_accumulate_model("fp32_kahan")) == 1 + 1000 * 0x1p-25f);
  CHECK(accumulate(std::vector<float>(5000, 1.0f), parse_accumulate_model("fp16_kahan")) == 5000.0f);
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

/// The tree from its root down: the left half is the largest power of two below the number of terms.
float tree_sum(std::span<const float> terms, const Quantizer& q) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return round(terms[0], q);
  std::size_t half = 1;
  while (half * 2 < terms.size()) half *= 2;
  return round(tree_sum(terms.first(half), q) + tree_sum(terms.subspan(half), q), q);
}

TEST_CASE("a pairwise sum of any number of terms is the tree's from its root down", "[accumulate]") {
  const std::vector<float> values = uniform_floats(700, -1, 3, 12);
  for (const FloatFormat& format : {fp16, bf16, fp32}) {
    for (std::size_t count = 0; count <= values.size(); ++count) {
      const std::span terms(values.data(), count);
      CHECK(accumulate(terms, {format, AccumulateOrder::pairwise}) == tree_sum(terms, {.format = format}));
    }
  }
}

TEST_CASE("products of 64 and 63 factors are refused under every model", "[accumulate]") {
  const std::vector<float> ours(64, 1.0F), theirs(63, 1.0F);
  for (const NamedAccumulateModel& named : accumulate_models) {
    CAPTURE(named.name);
    const AccumulateModel model = parse_accumulate_model(named.name);
    check_says(message_of<InvalidArgument>([&] { (void)accumulate_products(ours, theirs, model); }),
               {"64 and 63"});
    check_says(message_of<InvalidArgument>([&] { (void)accumulate_products_from(1, theirs, ours, model); }),
               {"63 and 64"});
  }
}

}  // namespace
}  // namespace halfscope::accumulate_test
