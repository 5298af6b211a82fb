// Copies patches into a matrix, code by code, and hands products to the GPU's own units.
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

namespace halfscope::cuda {
namespace {

template <typename Code>
struct GatherElement {
  const Code* data;
  const std::int32_t* row;
  const std::int32_t* column;
  std::int64_t width, stride;  ///< elements of a stored row, and from one to the next
  bool transposed;
  Code* to;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t line = i / width, place = i % width;
    to[line * stride + place] =
        transposed ? data[row[place] + column[line]] : data[row[line] + column[place]];
  }
};

template <typename Code>
void gather(const GatherMatrix& a, const GatheredRows& rows) {
  const std::int64_t depth = std::ssize(a.column), count = rows.rows * depth;
  if (count == 0) return;
  const bool transposed = a.layout == MatrixLayout::transposed;
  const std::int64_t width = transposed ? rows.rows : depth;
  const auto some_rows =
      a.row.subspan(static_cast<std::size_t>(rows.first), static_cast<std::size_t>(rows.rows));
  const std::span to(static_cast<Code*>(rows.to), 1);
  const std::span data(static_cast<const Code*>(a.data.data), 1);
  for_each(count,
           GatherElement<Code>{on_device(data), on_device(some_rows), on_device(a.column), width, rows.stride,
                               transposed, on_device(to)},
           "gather_matrix");
}

CUstream_st* stream_of_products() {
#if defined(__CUDACC__)
  return stream();
#else
  return nullptr;
#endif
}

}  // namespace

void gather_matrix(const GatherMatrix& a, const GatheredRows& rows) {
  if (a.data.storage == DType::f32) return gather<float>(a, rows);
  gather<std::uint16_t>(a, rows);
}

void multiply_native(ProductMethod method, const DeviceProduct& product) {
  if (method == ProductMethod::library) return gemm_cublas(product, stream_of_products());
  gemm_ordered(product, stream_of_products());
}

}  // namespace halfscope::cuda
