// The matrix product equals its definition, element by element and bit for bit, for every model that it has.
#include <halfscope/core/isa.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/matrix_products.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::gemm_test {
namespace {

TEST_CASE("gemm is the ordered sum for plain and transposed matrices, every tile's edge included", "[gemm]") {
  for (const Extents& extents :
       {Extents{1, 1, 1}, Extents{0, 5, 3}, Extents{3, 5, 0}, Extents{31, 17, 31}, Extents{25, 33, 513},
        Extents{12, 64, 256}, Extents{5, 1, 1000}, Extents{2, 18, 4097}}) {
    const Operands operands = uniform_operands(extents);
    for (const AccumulateModel& model : product_models()) check_products(operands, extents, model);
  }
}

TEST_CASE("gemm is the ordered sum for products that are split by rows or by columns", "[gemm]") {
  for (const Extents& extents : {Extents{257, 31, 259}, Extents{19, 599, 97}}) {
    const Operands operands = uniform_operands(extents);
    for (const char* name : {"fp32_sequential", "fp16_sequential", "tensor_core(hopper)"}) {
      check_products(operands, extents, parse_accumulate_model(name));
    }
  }
}

/// Magnitudes from 2^-26 to 2^17, beyond FP16 at both ends, a third of them zeros of either sign.
std::vector<float> wide_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values = uniform_floats(count, -26, 17, seed);
  const RandomStream stream{.seed = seed, .step = 1};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = stream.bits(i);
    const float magnitude = bits % 3 == 0 ? 0.0f : std::exp2(values[i]);
    values[i] = (bits >> 8) % 2 == 0 ? magnitude : -magnitude;
  }
  return values;
}

TEST_CASE("gemm is the ordered sum of numbers of every size", "[gemm]") {
  const Extents extents{29, 37, 77};
  const std::size_t a = size_of(extents.rows, extents.depth), b = size_of(extents.depth, extents.columns);
  for (const AccumulateModel& model : product_models()) {
    check_products({wide_floats(a, 3), wide_floats(b, 4)}, extents, model);
    check_products({random_floats(a, 5), random_floats(b, 6)}, extents, model);
    // Subnormal numbers alone, then zeros alone.
    check_products({uniform_floats(a, -0x1p-14f, 0x1p-14f, 7), uniform_floats(b, -0x1p-14f, 0x1p-14f, 8)},
                   extents, model);
    check_products({uniform_floats(a, -0x1p-135f, 0x1p-135f, 9), std::vector<float>(b, -0.0f)}, extents,
                   model);
  }
}

TEST_CASE("gemm is the ordered sum where one element in a hundred is infinite, NaN or huge", "[gemm]") {
  const Extents extents{14, 35, 300};
  Operands operands = uniform_operands(extents);
  const std::vector<float> special = special_floats();
  for (auto* values : {&operands.a, &operands.b}) {
    for (std::size_t i = 7; i < values->size(); i += 101) (*values)[i] = special[(i / 101) % special.size()];
  }
  for (const AccumulateModel& model : product_models()) check_products(operands, extents, model);
}

/// Random FP16 codes; few are infinite or NaN, or every long sum would be.
std::vector<float> random_codes(std::size_t count, std::uint64_t seed) {
  std::vector<float> values = random_floats(count, seed);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = to_bits(values[i]);
    values[i] = decode(i % 97 == 5 ? code : code & 0xBBFFu, fp16);
  }
  return values;
}

TEST_CASE("a product with one is rounded to every format as its definition says", "[gemm]") {
  for (const FloatFormat& format : sum_formats_under_test()) {
    std::vector<float> values = boundary_floats(format);
    std::ranges::copy(random_floats(1000, 31), std::back_inserter(values));
    const Extents extents{1, std::ssize(values), 1};
    check_products({{1.0f}, values}, extents, {.format = format, .order = AccumulateOrder::sequential});
  }
}

TEST_CASE("fused sums of 0 to 4097 terms are those of one fma after the other", "[gemm][fused]") {
  constexpr std::int64_t most = 4097, columns = 17;
  const Operands operands = uniform_operands({1, columns, most});
  const auto row = strided_offsets(1, most), column = strided_offsets(most, 1);
  const AccumulateModel model = parse_accumulate_model("fp32_fused");
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    std::vector<float> expected(columns), found(columns);
    for (std::int64_t depth = 0; depth <= most; ++depth) {
      gemm({operands.a.data(), row.values(), column.values().first(static_cast<std::size_t>(depth))},
           {operands.b.data(), depth, columns}, found, model);
      REQUIRE(found == expected);
      for (std::size_t n = 0; n < columns && depth < most; ++n) {
        const auto k = static_cast<std::size_t>(depth);
        expected[n] = std::fma(operands.a[k], operands.b[k * columns + n], expected[n]);
      }
    }
  }
}

TEST_CASE("sums of random bit patterns are the definition's for every depth", "[gemm][fused][tensor_core]") {
  for (const std::int64_t depth : {1, 2, 3, 15, 16, 17, 255, 256, 257, 1000, 4097}) {
    const Extents extents{3, 35, depth};
    const std::size_t a = size_of(extents.rows, depth), b = size_of(depth, extents.columns);
    for (const char* name :
         {"fp16_sequential", "fp16_fused", "bf16_fused", "fp32_fused", "tensor_core(volta)",
          "tensor_core(ampere)", "tensor_core(hopper)", "bf16_tensor_core(hopper)"}) {
      const AccumulateModel model = parse_accumulate_model(name);
      check_products({random_codes(a, 11), random_codes(b, 12)}, extents, model);
      check_products({random_floats(a, 13), random_floats(b, 14)}, extents, model);
      check_products(uniform_operands(extents), extents, model);
    }
  }
}

TEST_CASE("sixteen products of the largest kind pass 31 bits and are still exact", "[gemm][tensor_core]") {
  const float nearly_two = 2 - 0x1p-10f;
  const Extents extents{3, 19, 48};
  for (const float sign : {1.0f, -1.0f}) {
    const Operands operands{std::vector<float>(size_of(3, 48), nearly_two),
                            std::vector<float>(size_of(48, 19), sign * nearly_two)};
    check_products(operands, extents, parse_accumulate_model("tensor_core(hopper)"));
    check_products({std::vector<float>(size_of(3, 48), 2), std::vector<float>(size_of(48, 19), sign)},
                   extents, parse_accumulate_model("tensor_core(hopper)"));
  }
}

TEST_CASE("a sum of nearly 2 and sixteen of the largest products passes 31 bits", "[gemm][tensor_core]") {
  const float nearly_two = 2 - 0x1p-10f;
  const Extents extents{5, 19, 32};
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> b(size_of(extents.depth, extents.columns), sign * nearly_two);
    std::fill_n(b.begin(), size_of(16, extents.columns), 0.0f);
    std::fill_n(b.begin(), extents.columns, sign * 0.9375f);
    const Operands operands{std::vector<float>(size_of(extents.rows, extents.depth), nearly_two), b};
    for (const char* name : {"tensor_core(hopper)", "bf16_tensor_core(hopper)"}) {
      check_products(operands, extents, parse_accumulate_model(name));
    }
  }
}

TEST_CASE("a zero times the largest number leaves the small products their places", "[gemm][tensor_core]") {
  const Extents extents{5, 19, 33};
  Operands operands{uniform_floats(size_of(5, 33), -0x1p-10f, 0x1p-10f, 21),
                    uniform_floats(size_of(33, 19), -0x1p-10f, 0x1p-10f, 22)};
  for (std::size_t i = 0; i < operands.a.size(); i += 3) operands.a[i] = 0;  // in every third column
  for (std::size_t i = 0; i < operands.b.size(); ++i) {
    if (i / 19 % 3 == 0) operands.b[i] = 65504;
  }
  for (const char* name : {"tensor_core(volta)", "tensor_core(ampere)", "tensor_core(hopper)",
                           "bf16_tensor_core(hopper)", "tf32_tensor_core(ampere)"}) {
    check_products(operands, extents, parse_accumulate_model(name));
  }
}

TEST_CASE("gemm gives the same bits with one and two threads", "[gemm][threads]") {
  const Operands operands = uniform_operands({500, 40, 300});
  const auto rows = strided_offsets(500, 300);
  const auto columns = strided_offsets(300, 1);
  for (const char* name : {"fp32_sequential", "fp16_sequential", "fp16_chunked(64)", "tensor_core(hopper)"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    std::vector<float> one(500 * 40), two(500 * 40);
    gemm({operands.a.data(), rows.values(), columns.values()}, {operands.b.data(), 300, 40}, one, model);
    with_threads(2, [&] {
      gemm({operands.a.data(), rows.values(), columns.values()}, {operands.b.data(), 300, 40}, two, model);
    });
    CHECK(one == two);
  }
}

TEST_CASE("large products on the device, whose blocks are larger, are those on the CPU", "[gemm][cuda]") {
  if (!can_use_device()) return;
  const Extents extents{513, 520, 35};
  Operands operands = uniform_operands(extents);
  operands.a[1000] = INFINITY;
  operands.b[2000] = NAN;
  for (const char* name : {"fp32_sequential", "fp16_chunked(3)", "fp16_fused", "tensor_core(volta)",
                           "tensor_core(ampere)", "tensor_core(hopper)", "fp8_e4m3_tensor_core(hopper)"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    for (const bool transposed : {false, true}) {
      const auto rows = strided_offsets(extents.rows, transposed ? 1 : extents.depth);
      const auto columns = strided_offsets(extents.depth, transposed ? extents.rows : 1);
      const GatherMatrix matrix{operands.a.data(), rows.values(), columns.values()};
      std::vector<float> expected(size_of(extents.rows, extents.columns));
      gemm(matrix, {operands.b.data(), extents.depth, extents.columns}, expected, model);
      INFO(to_string(model));
      CHECK(count_different(device_product(operands, extents, matrix, model), expected) == 0);
    }
  }
}

TEST_CASE("offsets on the device are those on the CPU", "[gemm][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  for (const std::int64_t count : {0, 1, 31, 1000}) {
    const std::vector<std::int32_t> expected = strided_offsets(count, 7).to_host();
    const DeviceScope scope(Device::cuda);
    CHECK(strided_offsets(count, 7).to_host() == expected);
  }
}

TEST_CASE("the product's 32-bit offsets are checked where they are made", "[gemm]") {
  constexpr std::int64_t stride = std::numeric_limits<std::int32_t>::max();
  CHECK(strided_offsets(1, stride).size() == 1);
  CHECK(strided_offsets(3, stride / 3).data()[2] == stride / 3 * 2);
  for (const auto& [count, distance] :
       {std::pair<std::int64_t, std::int64_t>{1, stride + 1}, {stride, 2}, {1 << 16, 1 << 16}}) {
    check_says(message_of<InvalidArgument>(
                   [&, n = count, d = distance] { static_cast<void>(strided_offsets(n, d)); }),
               {std::to_string(count), std::to_string(distance), "too large for one product"});
  }
}

TEST_CASE("gemm refuses shapes that disagree and orders it does not have", "[gemm]") {
  const std::vector<float> a(6), b(6);
  const auto rows = strided_offsets(2, 3);
  const auto columns = strided_offsets(3, 1);
  std::vector<float> c(4);
  CHECK(message_of<InvalidArgument>([&] {
          gemm({a.data(), rows.values(), columns.values()}, {b.data(), 2, 3}, c, {});
        }) == "gemm: (2, 3) times (2, 3) does not give 4 elements");
  for (const char* name : {"fp16_pairwise", "fp32_kahan"}) {
    const std::string message = message_of<InvalidArgument>([&] {
      gemm({a.data(), rows.values(), columns.values()}, {b.data(), 3, 2}, c, parse_accumulate_model(name));
    });
    check_says(message, {"not in " + std::string(name)});
  }
  CHECK_THROWS_AS(check_product_model({.order = AccumulateOrder::chunked}), InvalidArgument);
  CHECK_NOTHROW(check_device_product_model(parse_accumulate_model("tensor_core(hopper)")));
  for (const auto& entry : cpu_product_models) {
    const AccumulateModel model = parse_accumulate_model(entry.name);
    CHECK_NOTHROW(check_product_model(model));
    check_says(message_of<InvalidArgument>([&] { check_device_product_model(model); }),
               {"give device = cpu"});
  }
  CHECK_THROWS_AS(strided_offsets(1 << 20, 1 << 20), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::gemm_test
