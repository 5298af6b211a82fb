// The native products on a GPU: the ordered one gives the bits of the CPU's model, cuBLAS the exact result
// where every order of adding gives that.
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/device_memory.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/native_matrices.hpp"

namespace halfscope::gemm_native_gpu_test {
namespace {

using enum MatrixLayout;
constexpr auto f16 = DType::f16, b16 = DType::bf16, f32 = DType::f32;

struct Types {
  DType input, sum, output;
};

bool skipped() {
  return !can_use_device();
}

/// The types that the device has: bf16 from 8.0 on.
std::vector<Types> types_of_device() {
  std::vector<Types> types{{f16, f32, f32}, {f16, f32, f16}, {f16, f16, f16}};
  if (device_capability().major >= 8) types.insert(types.end(), {{b16, f32, f32}, {b16, f32, b16}});
  return types;
}

using Multiply = void (*)(const DeviceProduct&, CUstream_st*);

/// c's codes after the product, with a sentinel element after every row and two after the last.
template <typename Code>
std::vector<Code> multiplied(const NativeCase& c, Multiply multiply, const NativeMatrix& a,
                             const NativeMatrix& b) {
  const DeviceMemory device_a(a.codes), device_b(b.codes);
  const std::int64_t stride = c.columns + 1 + c.gap;
  const DeviceMemory out(std::vector<Code>(static_cast<std::size_t>(c.rows * stride + 2), Code{0x5A5A}));
  multiply({.rows = c.rows,
            .depth = c.depth,
            .columns = c.columns,
            .input = c.input,
            .sum = c.sum,
            .output = c.output,
            .a = {device_a.data(), a.stride, c.a_layout},
            .b = {device_b.data(), b.stride, c.b_layout},
            .c = out.data(),
            .c_stride = stride},
           nullptr);
  return out.read<Code>();
}

template <typename Code>
void check_codes(const NativeCase& c, Multiply multiply, const std::vector<float>& expected) {
  const std::int64_t stride = c.columns + 1 + c.gap;
  const std::vector<Code> codes = multiplied<Code>(c, multiply, native_a(c), native_b(c));
  INFO(to_string(c));
  CHECK(count_different(codes, stride, expected, c) == 0);
  std::size_t touched = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % stride, row = static_cast<std::int64_t>(i) / stride;
    if ((column >= c.columns || row >= c.rows) && codes[i] != 0x5A5A) ++touched;
  }
  CHECK(touched == 0);
}

void check(const NativeCase& c, Multiply multiply, const std::vector<float>& expected) {
  if (c.output == f32) return check_codes<std::uint32_t>(c, multiply, expected);
  check_codes<std::uint16_t>(c, multiply, expected);
}

void check_ordered(const NativeCase& c) {
  check(c, gemm_ordered, modelled_product(c, tensor_core_of_capability(device_capability())));
}

TEST_CASE("the ordered product on the device is the model's", "[gemm][ordered][cuda][long]") {
  if (skipped()) return;
  for (const Types& types : types_of_device()) {
    for (const MatrixLayout a : {row_major, transposed}) {
      for (const MatrixLayout b : {row_major, transposed}) {
        for (const Numbers numbers : {Numbers::uniform, Numbers::random_codes}) {
          NativeCase c{257, 100, 259, a, b, types.input, types.sum, types.output, 0, numbers};
          check_ordered(c);
          c.gap = 3;
          check_ordered(c);
          for (const std::int64_t size : {0, 1, 31}) {
            c.rows = c.columns = size;
            check_ordered(c);
          }
        }
      }
    }
  }
}

TEST_CASE("the ordered product on the device is the model's at small sizes", "[gemm][ordered][cuda]") {
  if (skipped()) return;
  for (const Types& types : types_of_device()) {
    for (const MatrixLayout a : {row_major, transposed}) {
      for (const MatrixLayout b : {row_major, transposed}) {
        for (const std::int64_t depth : {0, 1, 24, 33, 100})
          check_ordered({131, depth, 37, a, b, types.input, types.sum, types.output, depth % 3});
      }
    }
  }
}

/// Each of a warp's 8 x 8 fragments once holds the last row, the last of an even and of an odd number of
/// columns, and of those with and without a store of pairs.
TEST_CASE("the ordered product on the device ends in every fragment of a warp", "[gemm][ordered][cuda]") {
  if (skipped()) return;
  for (const Types& types : types_of_device()) {
    for (const MatrixLayout a : {row_major, transposed}) {
      for (const MatrixLayout b : {row_major, transposed}) {
        for (std::int64_t edge = 64; edge < 128; edge += 8) {
          NativeCase c{edge + 3, 1, edge + 2, a, b, types.input, types.sum, types.output};
          check_ordered(c);
          c.columns = edge + 1;
          check_ordered(c);
          c.gap = 1;
          check_ordered(c);
        }
      }
    }
  }
}

TEST_CASE("the ordered product on the device is the model's for every depth", "[gemm][ordered][cuda][long]") {
  if (skipped()) return;
  std::vector<std::int64_t> depths{511, 512, 1000, 2049, 4095, 4096, 4097};
  for (std::int64_t depth = 0; depth <= 130; ++depth) depths.push_back(depth);
  for (const Types& types : types_of_device()) {
    for (const std::int64_t depth : depths) {
      for (const Numbers numbers : {Numbers::uniform, Numbers::random_codes}) {
        NativeCase c{33, depth, 17, row_major, row_major, types.input, types.sum, types.output, 0, numbers};
        check_ordered(c);
      }
    }
  }
}

TEST_CASE("the ordered product on the device is the model's where it is large",
          "[gemm][ordered][cuda][long]") {
  if (skipped()) return;
  check_ordered({257, 4097, 259, row_major, row_major, f16, f32, f16});
  check_ordered({1024, 1024, 1500, row_major, transposed, f16, f32, f32});
  check_ordered({257, 4097, 259, transposed, row_major, f16, f16, f16});
}

TEST_CASE("a bf16 product before compute capability 8.0 is refused", "[gemm][ordered][cuda]") {
  if (skipped() || device_capability().major >= 8) return;
  check_says(message_of<InvalidArgument>([] { gemm_ordered({.input = b16}, nullptr); }), {"turing", "bf16"});
}

/// Products of small integers: every partial sum is a number of FP16, so that no order rounds.
template <typename Code>
void check_integers(NativeCase c) {
  NativeMatrix a = native_a(c), b = native_b(c);
  const auto integer = [&](std::uint32_t bits) {
    const float value = static_cast<float>(bits % 5) - 2;
    return c.input == f32 ? to_bits(value) : encode(value, format_of(c.input));
  };
  std::vector<Code> codes_a(a.codes.size()), codes_b(b.codes.size());
  for (std::size_t i = 0; i < codes_a.size(); ++i) codes_a[i] = static_cast<Code>(integer(a.codes[i]));
  for (std::size_t i = 0; i < codes_b.size(); ++i) codes_b[i] = static_cast<Code>(integer(b.codes[i]));
  const auto value = [&](const std::vector<Code>& codes, const NativeMatrix& m, MatrixLayout layout,
                         std::int64_t row, std::int64_t column) {
    const std::int64_t place = layout == row_major ? row * m.stride + column : column * m.stride + row;
    return decode(codes[static_cast<std::size_t>(place)], format_of(c.input));
  };
  std::vector<float> expected;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < c.depth; ++k)
        sum += value(codes_a, a, c.a_layout, i, k) * value(codes_b, b, c.b_layout, k, j);
      expected.push_back(round(sum, {.format = format_of(c.output)}));
    }
  }
  const DeviceMemory device_a(codes_a), device_b(codes_b);
  const auto with_integers = [&](auto code) {
    using Out = decltype(code);
    const std::int64_t stride = c.columns + 3;
    const DeviceMemory out(std::vector<Out>(static_cast<std::size_t>(c.rows * stride)));
    gemm_cublas({c.rows,
                 c.depth,
                 c.columns,
                 c.input,
                 c.sum,
                 c.output,
                 {device_a.data(), a.stride, c.a_layout},
                 {device_b.data(), b.stride, c.b_layout},
                 out.data(),
                 stride},
                nullptr);
    INFO(to_string(c));
    CHECK(count_different(out.template read<Out>(), stride, expected, c) == 0);
  };
  if (c.output == f32) return with_integers(std::uint32_t{});
  with_integers(std::uint16_t{});
}

TEST_CASE("cuBLAS gives the exact product where no order of adding rounds", "[gemm][cublas][cuda]") {
  if (skipped()) return;
  std::vector<Types> types = types_of_device();
  types.push_back({f32, f32, f32});
  for (const Types& t : types) {
    for (const MatrixLayout a : {row_major, transposed}) {
      for (const MatrixLayout b : {row_major, transposed}) {
        for (const std::int64_t size : {0, 1, 31, 130}) {
          for (const std::int64_t depth : {0, 1, 33, 400}) {
            const NativeCase c{size, depth, size + 2, a, b, t.input, t.sum, t.output};
            if (t.input == f32)
              check_integers<std::uint32_t>(c);
            else
              check_integers<std::uint16_t>(c);
          }
        }
      }
    }
  }
}

TEST_CASE("cuBLAS multiplies f32 without TF32", "[gemm][cublas][cuda]") {
  if (skipped()) return;
  const std::int64_t size = 256;
  std::vector<float> a(static_cast<std::size_t>(size * size)), b(a.size());
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      const auto at = static_cast<std::size_t>(i * size + j);
      a[at] = 1 + static_cast<float>(at) * 0x1p-23f;  // TF32 has 10 bits of it
      b[at] = i == j ? 1.0f : 0.0f;
    }
  }
  const DeviceMemory device_a(a), device_b(b), out(std::vector<float>(a.size()));
  gemm_cublas(
      {size, size, size, f32, f32, f32, {device_a.data(), size}, {device_b.data(), size}, out.data(), size},
      nullptr);
  CHECK(out.read<float>() == a);
}

}  // namespace
}  // namespace halfscope::gemm_native_gpu_test
