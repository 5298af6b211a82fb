// halfscope.matmul.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"
#include "binding/ordered_product.hpp"
#include "binding/strided_floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* matmul_documentation =
    "The matrix product as halfscope.matmul has it, whatever becomes of gradients.";

/// The products' offsets into a have 32 bits.
constexpr std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();

/// Whether products read the matrices of b's last two axes where they lie: plain or transposed.
bool suits_right(const Strided& b) {
  const std::size_t axes = b.strides.size();
  if (axes < 2) return false;
  const std::int64_t row = b.strides[axes - 2], column = b.strides[axes - 1];
  return row >= 0 && column >= 0 && std::min(row, column) <= 1;
}

bool suits_left(const Strided& a) {
  const std::size_t axes = a.strides.size();
  if (axes < 2) return axes == 1 && (a.strides[0] == 1 || a.extents[0] <= 1);
  return suits_right(a) && a.extents[axes - 1] * a.strides[axes - 1] <= most_elements;
}

/// An axis of both factors, of which one may repeat its matrices: its stride is 0 there.
struct BatchAxis {
  std::int64_t extent, a_stride, b_stride;
};

/// Products of the matrices of two arrays.
struct MatrixProducts {
  StridedMatrices a, b;
  std::vector<BatchAxis> axes;
  std::vector<std::int64_t> a_start, b_start;
  std::vector<std::size_t> result;  ///< its extents

  [[nodiscard]] std::size_t elements() const {
    std::size_t count = 1;
    for (const std::size_t extent : result) count *= extent;
    return count;
  }
};

InvalidArgument wrong_shapes(const Strided& a, const Strided& b, std::string_view right) {
  return InvalidArgument(fmt::format("matmul: shapes ({}) and ({}); {}", fmt::join(a.extents, ", "),
                                     fmt::join(b.extents, ", "), right));
}

void check_matrices(const Strided& a, const Strided& b) {
  if (a.extents.empty() || b.extents.size() < 2 || a.extents.back() != b.extents[b.extents.size() - 2])
    throw wrong_shapes(a, b, "give (..., k) and (k, n), or (..., m, k) and (..., k, n)");
  if (a.extents.back() > most_elements) {
    throw InvalidArgument(
        fmt::format("matmul: rows of {} elements; give at most {}", a.extents.back(), most_elements));
  }
}

/// The axes before the last two, one beside the other from the right, as NumPy broadcasts them.
std::vector<BatchAxis> batch_axes(const Strided& a, const Strided& b) {
  const std::size_t of_a = a.extents.size() - std::min<std::size_t>(2, a.extents.size()),
                    of_b = b.extents.size() - 2, count = std::max(of_a, of_b);
  std::vector<BatchAxis> axes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_a = i < of_a, in_b = i < of_b;
    const std::int64_t x = in_a ? a.extents[of_a - 1 - i] : 1, y = in_b ? b.extents[of_b - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw wrong_shapes(a, b, "give axes before the last two that are equal, 1 or missing");
    axes[count - 1 - i] = {x == 1 ? y : x, in_a ? a.strides[of_a - 1 - i] : 0,
                           in_b ? b.strides[of_b - 1 - i] : 0};
  }
  return axes;
}

/// Makes rows of one matrix of the innermost matrices of a that all meet the same matrix of b: one large
/// product instead of many.
void join_rows(MatrixProducts& products) {
  StridedMatrices& a = products.a;
  for (; !products.axes.empty(); products.axes.pop_back()) {
    const BatchAxis& axis = products.axes.back();
    if (axis.extent == 1) continue;
    if (axis.b_stride != 0 || axis.a_stride < 0) return;
    if (a.rows != 1 && axis.a_stride != a.rows * a.row_stride) return;
    if (a.rows == 1) a.row_stride = axis.a_stride;
    a.rows *= axis.extent;
  }
}

/// The first elements of every product's matrices, the last axis fastest.
void find_starts(MatrixProducts& products) {
  products.a_start = products.b_start = {0};
  for (const BatchAxis& axis : products.axes) {
    const auto spread = [&](std::vector<std::int64_t>& start, std::int64_t stride) {
      std::vector<std::int64_t> all;
      for (const std::int64_t first : start) {
        for (std::int64_t i = 0; i < axis.extent; ++i) all.push_back(first + i * stride);
      }
      start = std::move(all);
    };
    spread(products.a_start, axis.a_stride);
    spread(products.b_start, axis.b_stride);
  }
  products.a.start = products.a_start;
  products.b.start = products.b_start;
}

MatrixProducts products_of(const Strided& a, const Strided& b) {
  check_matrices(a, b);
  MatrixProducts products;
  products.axes = batch_axes(a, b);
  for (const BatchAxis& axis : products.axes)
    products.result.push_back(static_cast<std::size_t>(axis.extent));
  if (const std::size_t axes = a.extents.size(); axes > 1) {
    products.axes.push_back({a.extents[axes - 2], a.strides[axes - 2], 0});
    products.result.push_back(static_cast<std::size_t>(a.extents[axes - 2]));
  }
  const std::size_t row = b.extents.size() - 2, column = row + 1;
  products.result.push_back(static_cast<std::size_t>(b.extents[column]));
  products.a = {.data = a.data, .rows = 1, .columns = a.extents.back(), .column_stride = a.strides.back()};
  products.b = {.data = b.data,
                .rows = b.extents[row],
                .columns = b.extents[column],
                .row_stride = b.strides[row],
                .column_stride = b.strides[column]};
  if (products.elements() == 0) {
    products.axes.clear();
    products.a.rows = 0;
  }
  join_rows(products);
  find_starts(products);
  return products;
}

nb::object matmul(nb::handle a, nb::handle b, const std::string& order) {
  const AccumulateModel model = parse_accumulate_model(order);
  const StridedFloats left(a, "matmul: a", suits_left), right(b, "matmul: b", suits_right);
  const MatrixProducts products = products_of(left.view(), right.view());
  const std::size_t elements = products.elements();
  auto product = std::make_unique_for_overwrite<float[]>(elements);
  {
    const nb::gil_scoped_release release;
    multiply_batch(products.a, products.b, {product.get(), elements}, model);
  }
  return to_array(std::move(product), products.result, a);
}

}  // namespace

void bind_matmul(nb::module_& module) {
  module.def("matmul", matmul, nb::arg("a").none(), nb::arg("b").none(), nb::kw_only(),
             nb::arg("order") = "fp32_fused", matmul_documentation);
}

}  // namespace halfscope::python
