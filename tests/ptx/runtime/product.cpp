// The product that stands for cuBLAS's: whole lines are read, multiplied by the CPU's kernels and written.
#include "tests/ptx/runtime/product.hpp"

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include <halfscope/device/device.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope::ptx {
namespace {

std::uint64_t line_address(const void* data, std::int64_t stride, DType type, std::int64_t line) {
  const auto offset = static_cast<std::uint64_t>(line * stride) * bytes_per_element(type);
  return address_of(data) + offset;
}

template <typename Code>
void decode_line(std::span<const std::byte> bytes, std::span<float> values, const FloatFormat& format) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Code code;
    std::memcpy(&code, bytes.data() + i * sizeof(Code), sizeof(Code));
    values[i] = decode(code, format);
  }
}
template <typename Code>
void encode_line(std::span<const float> values, std::span<std::byte> bytes, const FloatFormat& format) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<Code>(encode(round(values[i], {.format = format}), format));
    std::memcpy(bytes.data() + i * sizeof(Code), &code, sizeof(Code));
  }
}

/// Numbers of a stored factor, its lines one after the other.
struct Stored {
  std::int64_t lines = 0, width = 0;
  std::vector<float> values;
};

Stored read_factor(GlobalMemory& memory, const DeviceMatrix& matrix, DType type, std::int64_t rows,
                   std::int64_t columns) {
  const bool plain = matrix.layout == MatrixLayout::row_major;
  Stored stored{plain ? rows : columns, plain ? columns : rows, {}};
  const auto width = static_cast<std::size_t>(stored.width);
  stored.values.resize(static_cast<std::size_t>(stored.lines) * width);
  std::vector<std::byte> bytes(width * bytes_per_element(type));
  for (std::int64_t line = 0; line < stored.lines; ++line) {
    memory.read(bytes, line_address(matrix.data, matrix.stride, type, line));
    const std::span values(stored.values.data() + static_cast<std::size_t>(line) * width, width);
    if (type == DType::f32) decode_line<std::uint32_t>(bytes, values, fp32);
    if (type != DType::f32) decode_line<std::uint16_t>(bytes, values, format_of(type));
  }
  return stored;
}

/// In row-major order, whatever is stored.
std::vector<float> rows_of(Stored&& stored, MatrixLayout layout) {
  if (layout == MatrixLayout::row_major) return std::move(stored.values);
  std::vector<float> turned(stored.values.size());
  for (std::int64_t line = 0; line < stored.lines; ++line) {
    for (std::int64_t i = 0; i < stored.width; ++i)
      turned[static_cast<std::size_t>(i * stored.lines + line)] =
          stored.values[static_cast<std::size_t>(line * stored.width + i)];
  }
  return turned;
}

std::vector<float> sums_in_f32(const DeviceProduct& p, const std::vector<float>& a,
                               const std::vector<float>& b, const TensorCore& core) {
  const DeviceScope scope(Device::cpu);
  AccumulateModel model{fp32, AccumulateOrder::fused, 0, {}};
  if (p.input != DType::f32) model = {format_of(p.input), AccumulateOrder::tensor_core, 0, core};
  const Memory<std::int32_t> rows = strided_offsets(p.rows, p.depth), columns = strided_offsets(p.depth, 1);
  std::vector<float> sums(static_cast<std::size_t>(p.rows * p.columns));
  const GatherMatrix gathered{ElementReader(a.data()), rows.values(), columns.values(),
                              MatrixLayout::row_major, p.depth};
  gemm(gathered, {ElementReader(b.data()), p.depth, p.columns}, sums, model);
  return sums;
}

std::vector<float> sums_in_f16(const DeviceProduct& p, const std::vector<float>& a,
                               const std::vector<float>& turned_b, const TensorCore& core) {
  const TensorCoreStep& step = tensor_core_step(core, fp16, fp16);
  const auto depth = static_cast<std::size_t>(p.depth);
  std::vector<float> sums;
  for (std::size_t row = 0; row < static_cast<std::size_t>(p.rows); ++row) {
    for (std::size_t column = 0; column < static_cast<std::size_t>(p.columns); ++column)
      sums.push_back(dot(std::span(a).subspan(row * depth, depth),
                         std::span(turned_b).subspan(column * depth, depth), 0.0f, step));
  }
  return sums;
}

std::vector<float> sums_of(GlobalMemory& memory, const DeviceProduct& p, const TensorCore& core) {
  const std::vector<float> a = rows_of(read_factor(memory, p.a, p.input, p.rows, p.depth), p.a.layout);
  Stored b = read_factor(memory, p.b, p.input, p.depth, p.columns);
  if (p.sum == DType::f32) return sums_in_f32(p, a, rows_of(std::move(b), p.b.layout), core);
  const bool plain = p.b.layout == MatrixLayout::row_major;
  return sums_in_f16(p, a, rows_of(std::move(b), plain ? MatrixLayout::transposed : MatrixLayout::row_major),
                     core);
}

}  // namespace

void multiply(GlobalMemory& memory, const DeviceProduct& product, const ComputeCapability& capability) {
  const std::vector<float> sums = sums_of(memory, product, tensor_core_of_capability(capability));
  const auto width = static_cast<std::size_t>(product.columns);
  std::vector<std::byte> bytes(width * bytes_per_element(product.output));
  for (std::int64_t row = 0; row < product.rows; ++row) {
    const std::span values(sums.data() + static_cast<std::size_t>(row) * width, width);
    if (product.output == DType::f32) encode_line<std::uint32_t>(values, bytes, fp32);
    if (product.output != DType::f32) encode_line<std::uint16_t>(values, bytes, format_of(product.output));
    memory.write(line_address(product.c, product.c_stride, product.output, row), bytes);
  }
}

}  // namespace halfscope::ptx
