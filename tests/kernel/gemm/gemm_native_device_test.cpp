// Operands of native products: the right ones, however patches are cut up.
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>

#include <halfscope/core/random.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::gemm_native_device_test {
namespace {

TEST_CASE("a model's own tensor core computes it, a library only what has no order", "[gemm][native]") {
  using enum ProductMethod;
  const auto hopper = parse_accumulate_model("tensor_core(hopper)");
  const auto bf16_hopper = parse_accumulate_model("bf16_tensor_core(hopper)");
  const std::optional<TensorCore> h200 = TensorCore{TensorCoreGeneration::hopper};
  const std::optional<TensorCore> t4 = TensorCore{TensorCoreGeneration::turing};
  const auto half = DType::f16, brain = DType::bf16, wide = DType::f32;
  CHECK(product_method(half, half, hopper, h200) == ordered);
  CHECK(product_method(brain, brain, bf16_hopper, h200) == ordered);
  CHECK(product_method(half, half, hopper, t4) == emulated);
  CHECK(product_method(half, half, hopper, std::nullopt) == emulated);
  CHECK(product_method(brain, brain, hopper, h200) == emulated);
  CHECK(product_method(half, wide, hopper, h200) == emulated);
  CHECK(product_method(wide, wide, hopper, h200) == emulated);
  CHECK(product_method(half, half, parse_accumulate_model("fp32_sequential"), h200) == emulated);
  const auto fast = parse_accumulate_model("cublas");
  CHECK(to_string(fast) == "cublas");
  CHECK(product_method(half, half, fast, h200) == library);
  CHECK(product_method(wide, wide, fast, std::nullopt) == library);
  check_says(message_of<InvalidArgument>([&] { (void)product_method(half, wide, fast, h200); }),
             {"f16 with f32"});
  CHECK_THROWS_AS(parse_accumulate_model("fp16_fast"), InvalidArgument);
  check_says(message_of<InvalidArgument>([&] { (void)accumulate({}, fast); }), {"cublas", "GPU's library"});
  const Array one = Array::from({1, 1}, {1});
  const auto offset = strided_offsets(1, 1);
  Array product({1, 1});
  const auto multiply = [&] {
    gemm({one.data(), offset.values(), offset.values()}, {one.data(), 1, 1}, product.values(), fast);
  };
  check_says(message_of<InvalidArgument>(multiply), {"cublas", "on the CPU"});
}

/// Element (i, j) of a matrix on the device.
float element(const DeviceMatrix& matrix, DType storage, std::int64_t i, std::int64_t j) {
  const std::int64_t at =
      matrix.layout == MatrixLayout::row_major ? i * matrix.stride + j : j * matrix.stride + i;
  const auto* from =
      static_cast<const std::byte*>(matrix.data) + static_cast<std::size_t>(at) * bytes_per_element(storage);
  std::uint32_t word = 0;
  detail::copy_memory(&word, Device::cpu, from, Device::cuda, bytes_per_element(storage));
  return storage == DType::f32 ? from_bits(word) : float_of_half(static_cast<std::uint16_t>(word));
}

/// Patches of 3 of a line of numbers, two apart, and how they are cut.
struct Patches {
  MatrixLayout layout;
  DType storage;
  std::int64_t most_bytes;
};

void check_patches(const Patches& c) {
  constexpr std::int64_t patches = 150, size = 3, columns = 2;
  Array line({2 * patches + size}), b({200, columns});
  std::vector<float> numbers(line.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  detail::copy_memory(line.data(), Device::cuda, numbers.data(), Device::cpu, numbers.size() * sizeof(float));
  const std::vector<float> zeros(b.size());
  detail::copy_memory(b.data(), Device::cuda, zeros.data(), Device::cpu, zeros.size() * sizeof(float));
  line = to_dtype(std::move(line), c.storage);
  b = to_dtype(std::move(b), c.storage);
  const auto positions = strided_offsets(patches, 2), elements = strided_offsets(size, 1);
  const bool plain = c.layout == MatrixLayout::row_major;
  const GatherMatrix a{ElementReader(line.view()), plain ? positions.values() : elements.values(),
                       plain ? elements.values() : positions.values(), c.layout, 0};
  const std::int64_t rows = std::ssize(a.row), depth = std::ssize(a.column);
  Array result({rows, columns});
  std::int64_t seen = 0, calls = 0;
  const auto look = [&](const DeviceProduct& product) {
    REQUIRE(product.c == result.data() + seen * columns);
    REQUIRE(product.depth == depth);
    REQUIRE(product.a.stride % 8 == 0);
    for (std::int64_t r = 0; r < product.rows; ++r) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t patch = plain ? seen + r : k, place = plain ? k : seen + r;
        REQUIRE(element(product.a, c.storage, r, k) == static_cast<float>(2 * patch + place));
      }
    }
    seen += product.rows;
    ++calls;
  };
  for_native_products(a, {ElementReader(b.view()), depth, columns}, result.values(), look, c.most_bytes);
  CHECK(seen == rows);
  CHECK(calls == (plain && c.most_bytes < 1000 ? 3 : 1));
}

TEST_CASE("patches are gathered piece by piece", "[gemm][native][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::transposed}) {
    for (const DType storage : {DType::f16, DType::f32}) {
      for (const std::int64_t most_bytes : {std::int64_t{1}, std::int64_t{1} << 20})
        check_patches({layout, storage, most_bytes});
    }
  }
}

TEST_CASE("plain and transposed matrices are multiplied where they lie", "[gemm][native][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const Array x({5, 7}, DType::f16), b({7, 2}, DType::f16);
  Array c({5, 2});
  const auto sevens = strided_offsets(5, 7), ones = strided_offsets(7, 1);
  const GatherMatrix a{ElementReader(x.view()), sevens.values(), ones.values(), MatrixLayout::row_major, 7};
  int calls = 0;
  for_native_products(a, {ElementReader(b.view()), 7, 2}, c.values(), [&](const DeviceProduct& product) {
    CHECK(product.a.data == x.view().data);
    CHECK(product.a.stride == 7);
    check_device_product(product, "test");
    ++calls;
  });
  CHECK(calls == 1);
}

}  // namespace
}  // namespace halfscope::gemm_native_device_test
