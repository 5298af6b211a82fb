// Matrices of 16-bit numbers as native products take them, and what a tensor-core model makes of them.
#pragma once

#include <cstdint>
#include <vector>

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/kernel/gemm/device_product.hpp>

namespace halfscope {

/// The codes of a stored matrix: `lines` rows of `width`, `stride` apart.
struct NativeMatrix {
  std::int64_t lines = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;
  std::vector<std::uint16_t> codes;
};

/// Which numbers: most of a magnitude near one, or random codes, a few of them infinite or NaN.
enum class Numbers : std::uint8_t { uniform, random_codes };

/// One product to compute natively and by the model.
struct NativeCase {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  MatrixLayout a_layout = MatrixLayout::row_major;
  MatrixLayout b_layout = MatrixLayout::row_major;
  DType input = DType::f16;
  DType sum = DType::f32;
  DType output = DType::f32;
  std::int64_t gap = 0;  ///< elements between the end of a stored row and the next, on top of a multiple of 8
  Numbers numbers = Numbers::uniform;
};

[[nodiscard]] NativeMatrix native_a(const NativeCase& c);
[[nodiscard]] NativeMatrix native_b(const NativeCase& c);
[[nodiscard]] std::string to_string(const NativeCase& c);

/// Every element of the product as numbers of `output`: the library's CPU `gemm` with the model of `core`
/// where sums are f32, else `dot` of its step.
[[nodiscard]] std::vector<float> modelled_product(const NativeCase& c, const TensorCore& core);

/// Elements where a stored product of `c` (codes of 16 bits, or of 32 as floats) differs from `expected`, all
/// NaNs taken for one.
template <typename Code>
[[nodiscard]] std::size_t count_different(const std::vector<Code>& stored, std::int64_t stride,
                                          const std::vector<float>& expected, const NativeCase& c);

}  // namespace halfscope
