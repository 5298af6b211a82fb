// Products of square matrices beside Eigen's.
#include "experiments/cli/bench/bench_products.hpp"

#include <fmt/format.h>

#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/block_format.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {
namespace {

/// Two square matrices of FP16 numbers, uniform on [-1, 1), and their product.
struct Product {
  Product(std::string_view accumulate, int matrix_size)
      : model(parse_accumulate_model(accumulate)), size(matrix_size) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = 2 * RandomStream{.seed = 3}.uniform(i) - 1;
      b[i] = 2 * RandomStream{.seed = 4}.uniform(i) - 1;
    }
    for (std::vector<float>* values : {&a, &b}) round(*values, *values, Quantizer{.format = fp16});
  }
  [[nodiscard]] double gigaflop() const { return 2e-9 * size * size * size; }
  void ours(int threads) {
    set_thread_count(threads);
    gemm({a.data(), row.values(), column.values(), MatrixLayout::row_major, size}, {b.data(), size, size}, c,
         model);
    set_thread_count(1);
  }
  void eigens() {
    dispatch_isa([&]<Isa isa>() { eigen_product_isa<isa>(a.data(), b.data(), c.data(), size); });
    use_memory();
  }

  AccumulateModel model;
  int size;
  std::vector<float> a = std::vector<float>(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)),
                     b = a, c = a;
  Memory<std::int32_t> row = strided_offsets(size, size), column = strided_offsets(size, 1);
};

std::string eigens_name() {
  const bool fma = dispatch_isa([]<Isa isa>() { return eigen_has_fma_isa<isa>(); });
  return fmt::format("Eigen {} {} FMA", HALFSCOPE_EIGEN_VERSION, fma ? "with" : "without");
}

}  // namespace

BenchResult bench_product(std::string_view accumulate, int size) {
  Product product(accumulate, size);
  const Times times = time_in_turn([&] { product.ours(1); }, [&] { product.eigens(); });
  return {product.gigaflop() / times.ours, "GFLOP/s", times.ratio, eigens_name()};
}

BenchResult bench_block_product(std::string_view name, BlockScaledKind kind, int size) {
  Product product("fp32_fused", size);
  const BlockFormat format = parse_block_format(name);
  const BlockScaledUnit& unit = block_scaled_unit(kind, format.scale());
  const MatrixShape shape{size, size};
  const BlockCodes a_codes = quantise_blocks(product.a, shape, format),
                   b_codes = quantise_blocks(product.b, shape, format);
  const auto matrix = [&](const BlockCodes& codes) {
    return BlockMatrix{format.element.format, size, size, codes.elements, codes.scales};
  };
  const BlockMatrix a = matrix(a_codes), b = matrix(b_codes);
  const Times times = time_in_turn([&] { gemm_blocks(a, b, product.c, unit); }, [&] { product.eigens(); });
  return {product.gigaflop() / times.ours, "GFLOP/s", times.ratio, eigens_name()};
}

BenchResult bench_product_on_two_threads(int size) {
  Product product("fp32_fused", size);
  const Times times = time_in_turn([&] { product.ours(2); }, [&] { product.ours(1); });
  return {product.gigaflop() / times.ours, "GFLOP/s", times.ratio, "one thread"};
}

}  // namespace halfscope
