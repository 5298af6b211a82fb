// halfscope._core.gather_matmul: the products of a convolution, of patches that are never copied.
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"
#include "binding/ordered_product.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* gather_matmul_documentation =
    R"doc(The product of a matrix that is gathered from an array and a plain one, as a machine adds it up, bit for bit.

c[m, n] is the `dot` of data[rows[m] + columns[k]] and b[k, n] over k, with data as one row of elements. The patches of
a convolution are such a matrix over padded images: rows are the positions, columns the elements of a patch. The weight
gradient has the two the other way round.

data: any shape, float32, float16 or bfloat16, in CPU memory; contiguous float32 is read where it lies.
rows, columns: (m), (k), int32, contiguous: offsets from 0 on.
b: (k, n), as data.
order: as matmul has it.

Returns (m, n), float32 of b's framework. Raises ValueError for offsets outside of data, shapes that do not fit and an
unknown order; TypeError for other types.)doc";

/// Offsets of the caller's, where they lie.
class Offsets {
 public:
  Offsets(nb::handle array, std::string_view argument) : array_(import_array(array, argument, "int32")) {
    if (array_.dtype() != nb::dtype<std::int32_t>()) {
      throw nb::type_error(fmt::format("{}: offsets of another type; give int32", argument).c_str());
    }
    if (array_.ndim() != 1 || !is_contiguous(array_) || !in_host_memory(array_)) {
      throw InvalidArgument(fmt::format("{}: give a contiguous array of one axis, in CPU memory", argument));
    }
  }
  [[nodiscard]] std::span<const std::int32_t> values() const {
    return {static_cast<const std::int32_t*>(array_.data()), array_.size()};
  }

 private:
  Dlpack array_;
};

void check_offsets(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                   std::size_t elements) {
  if (rows.empty() || columns.empty()) return;
  const auto [row, last_row] = std::ranges::minmax(rows);
  const auto [column, last_column] = std::ranges::minmax(columns);
  const std::int64_t last = std::int64_t{last_row} + last_column;
  if (row >= 0 && column >= 0 && last < static_cast<std::int64_t>(elements)) return;
  throw InvalidArgument(fmt::format(
      "gather_matmul: rows of offsets {} to {} and columns of {} to {}; data has {} elements, give "
      "offsets from 0 on whose sums are less",
      row, last_row, column, last_column, elements));
}

nb::object gather_matmul(nb::handle data, nb::handle rows, nb::handle columns, nb::handle b,
                         const std::string& order) {
  const AccumulateModel model = parse_accumulate_model(order);
  const FloatVec elements(data, "gather_matmul: data"), right(b, "gather_matmul: b");
  const Offsets row(rows, "gather_matmul: rows"), column(columns, "gather_matmul: columns");
  const std::size_t depth = column.values().size();
  if (right.shape().size() != 2 || right.shape()[0] != depth) {
    throw InvalidArgument(
        fmt::format("gather_matmul: b of {} axes and {} elements; give (k, n), for {} columns k = {}",
                    right.shape().size(), right.values().size(), depth, depth));
  }
  const std::vector<std::size_t> shape{row.values().size(), right.shape()[1]};
  const std::size_t count = shape[0] * shape[1];
  auto product = std::make_unique_for_overwrite<float[]>(count);
  {
    const nb::gil_scoped_release release;
    check_offsets(row.values(), column.values(), elements.values().size());
    multiply({.data = elements.values().data(), .row = row.values(), .column = column.values()},
             {right.values().data(), static_cast<std::int64_t>(depth), static_cast<std::int64_t>(shape[1])},
             {product.get(), count}, model);
  }
  return to_array(std::move(product), shape, b);
}

}  // namespace

void bind_gather_matmul(nb::module_& module) {
  module.def("gather_matmul", gather_matmul, nb::arg("data").none(), nb::arg("rows").none(),
             nb::arg("columns").none(), nb::arg("b").none(), nb::kw_only(), nb::arg("order") = "fp32_fused",
             gather_matmul_documentation);
}

}  // namespace halfscope::python
