// A matrix product of numbers that are stored natively in device memory, as both native products take it.
#pragma once

#include <cstdint>
#include <string>

#include <halfscope/core/dtype.hpp>
#include <halfscope/core/names.hpp>

namespace halfscope {

enum class MatrixLayout : std::uint8_t { row_major, transposed };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<MatrixLayout>{"row_major", "transposed"};

/// A factor in device memory: its element (i, j) is data[i * stride + j], or where it is stored transposed
/// data[j * stride + i].
struct DeviceMatrix {
  const void* data = nullptr;
  std::int64_t stride = 0;  ///< elements from one stored row to the next
  MatrixLayout layout = MatrixLayout::row_major;
};

/// c = a b with c (rows, columns), a (rows, depth), b (depth, columns); c's element (i, j) is
/// c[i * c_stride + j], and what lies between its rows is left alone.
struct DeviceProduct {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  DType input = DType::f16;   ///< type of a and b
  DType sum = DType::f32;     ///< type of the accumulators: f32, or for f16 products f16
  DType output = DType::f32;  ///< type of c: f32 or `input`; f16 where the sum is
  DeviceMatrix a{};
  DeviceMatrix b{};
  void* c = nullptr;
  std::int64_t c_stride = 0;
};

/// "f16 x f16 -> f32 -> f16, (64, 128) x (128, 32) transposed": for messages.
[[nodiscard]] std::string to_string(const DeviceProduct& product);

/// Throws InvalidArgument, beginning with `operation`, where an extent is negative or beyond 2^31 - 256, a
/// stride is shorter than its row, a pointer is missing, or the types are no combination that there is.
void check_device_product(const DeviceProduct& product, std::string_view operation);

}  // namespace halfscope
