// Checks of a native matrix product's request.
#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/gemm/device_product.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 256;

bool types_are_known(const DeviceProduct& p) {
  using enum DType;
  if (p.input == f32) return p.sum == f32 && p.output == f32;
  if (p.input != f16 && p.input != bf16) return false;
  if (p.sum == f16) return p.input == f16 && p.output == f16;
  return p.sum == f32 && (p.output == f32 || p.output == p.input);
}

/// A stored matrix of `lines` rows of `width` elements.
struct Stored {
  const void* data;
  std::int64_t stride;
  std::int64_t lines;
  std::int64_t width;
};

Stored stored(const DeviceMatrix& matrix, std::int64_t rows, std::int64_t columns) {
  const bool plain = matrix.layout == MatrixLayout::row_major;
  return {matrix.data, matrix.stride, plain ? rows : columns, plain ? columns : rows};
}

/// The defect of a matrix, or nothing.
std::string problem_of(const Stored& matrix) {
  if (matrix.lines == 0 || matrix.width == 0) return {};
  if (matrix.data == nullptr) return "has no memory";
  if (matrix.stride >= matrix.width) return {};
  return fmt::format("has rows of {} elements only {} apart; give a stride of {} or more", matrix.width,
                     matrix.stride, matrix.width);
}

}  // namespace

std::string to_string(const DeviceProduct& p) {
  const auto layout = [](const DeviceMatrix& matrix) {
    return matrix.layout == MatrixLayout::row_major ? "" : " transposed";
  };
  return fmt::format("{0} x {0} -> {1} -> {2}, ({3}, {4}){5} x ({4}, {6}){7}", name_of(p.input),
                     name_of(p.sum), name_of(p.output), p.rows, p.depth, layout(p.a), p.columns, layout(p.b));
}

void check_device_product(const DeviceProduct& p, std::string_view operation) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("{}: {}: {}", operation, to_string(p), why));
  };
  if (!types_are_known(p)) {
    refuse("there is f32 throughout, f16 or bf16 summed in f32 and stored as either, and f16 throughout");
  }
  for (const std::int64_t extent : {p.rows, p.depth, p.columns}) {
    if (extent < 0 || extent > largest_extent) refuse("extents are from 0 to 2^31 - 256");
  }
  const Stored matrices[] = {
      stored(p.a, p.rows, p.depth), stored(p.b, p.depth, p.columns), {p.c, p.c_stride, p.rows, p.columns}};
  for (int i = 0; i < 3; ++i) {
    const std::string problem = problem_of(matrices[i]);
    if (!problem.empty()) refuse(fmt::format("{} {}", "abc"[i], problem));
  }
}

}  // namespace halfscope
