// halfscope.matmul.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"
#include "binding/ordered_product.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* matmul_documentation =
    "The matrix product as halfscope.matmul has it, whatever becomes of gradients.";

struct ProductShape {
  std::int64_t rows = 1, depth = 0, columns = 0;
  std::vector<std::size_t> result{};
};

ProductShape shape_of(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  if (a.empty() || b.size() != 2 || a.back() != b.front()) {
    throw InvalidArgument(fmt::format("matmul: shapes ({}) and ({}); give (..., k) and (k, n)",
                                      fmt::join(a, ", "), fmt::join(b, ", ")));
  }
  ProductShape shape{.depth = static_cast<std::int64_t>(b[0]), .columns = static_cast<std::int64_t>(b[1])};
  shape.result.assign(a.begin(), a.end() - 1);
  for (const std::size_t extent : shape.result) shape.rows *= static_cast<std::int64_t>(extent);
  shape.result.push_back(b[1]);
  return shape;
}

/// Rows of a at a time: the products' offsets into a have 32 bits.
std::int64_t rows_per_product(const ProductShape& shape) {
  constexpr std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();
  if (shape.depth > most_elements) {
    throw InvalidArgument(
        fmt::format("matmul: rows of {} elements; give at most {}", shape.depth, most_elements));
  }
  return std::max<std::int64_t>(1, most_elements / std::max<std::int64_t>(1, shape.depth));
}

void multiply_in_blocks(const float* a, const float* b, const ProductShape& shape,
                        const AccumulateModel& model, std::span<float> c) {
  const std::int64_t most = std::min(shape.rows, rows_per_product(shape));
  const Memory<std::int32_t> row = strided_offsets(most, shape.depth);
  const Memory<std::int32_t> column = strided_offsets(shape.depth, 1);
  std::int64_t first = 0;
  do {  // once without a row, too: the model is checked there
    const auto count = static_cast<std::size_t>(std::min(most, shape.rows - first));
    const auto columns = static_cast<std::size_t>(shape.columns);
    const GatherMatrix left{.data = a + first * shape.depth,
                            .row = row.values().first(count),
                            .column = column.values(),
                            .stride = shape.depth};
    multiply(left, {.data = b, .rows = shape.depth, .columns = shape.columns},
             c.subspan(static_cast<std::size_t>(first) * columns, count * columns), model);
    first += most;
  } while (first < shape.rows);
}

nb::object matmul(nb::handle a, nb::handle b, const std::string& accumulate) {
  const AccumulateModel model = parse_accumulate_model(accumulate);
  const FloatVec left(a, "matmul: a"), right(b, "matmul: b");
  const ProductShape shape = shape_of(left.shape(), right.shape());
  const auto elements = static_cast<std::size_t>(shape.rows * shape.columns);
  auto product = std::make_unique_for_overwrite<float[]>(elements);
  {
    const nb::gil_scoped_release release;
    multiply_in_blocks(left.values().data(), right.values().data(), shape, model, {product.get(), elements});
  }
  return to_array(std::move(product), shape.result, a);
}

}  // namespace

void bind_matmul(nb::module_& module) {
  module.def("matmul", matmul, nb::arg("a").none(), nb::arg("b").none(), nb::kw_only(),
             nb::arg("accumulate") = "fp32_fused", matmul_documentation);
}

}  // namespace halfscope::python
