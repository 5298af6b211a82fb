// halfscope.sum.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* sum_documentation = "The sum as halfscope.sum has it, whatever becomes of gradients.";

/// An array as (outer, terms, inner), of which the terms are summed.
struct SumShape {
  std::int64_t outer = 1, terms = 1, inner = 1;
  std::vector<std::size_t> result;

  [[nodiscard]] std::int64_t sums() const { return outer * inner; }
};

SumShape shape_of(const std::vector<std::size_t>& extents, std::int64_t axis) {
  const std::int64_t axes = std::ssize(extents);
  if (axis < -axes || axis >= axes)
    throw InvalidArgument(fmt::format("sum: axis {} of an array of {} axes", axis, axes));
  const std::int64_t summed = axis < 0 ? axis + axes : axis;
  SumShape shape;
  for (std::int64_t i = 0; i < axes; ++i) {
    const auto extent = static_cast<std::int64_t>(extents[static_cast<std::size_t>(i)]);
    (i < summed ? shape.outer : i > summed ? shape.inner : shape.terms) *= extent;
    if (i != summed) shape.result.push_back(static_cast<std::size_t>(extent));
  }
  return shape;
}

/// (outer, terms, inner) as (terms, outer, inner): sums of neighbours are added up side by side.
std::vector<float> terms_first(std::span<const float> values, const SumShape& shape) {
  constexpr std::int64_t together = 16;
  std::vector<float> moved(values.size());
  parallel_for_ranges(shape.outer, together, [&](std::int64_t first, std::int64_t count) noexcept {
    for (std::int64_t k = 0; k < shape.terms; ++k) {
      const float* from = values.data() + (first * shape.terms + k) * shape.inner;
      float* to = moved.data() + (k * shape.outer + first) * shape.inner;
      for (std::int64_t o = 0; o < count; ++o, from += shape.terms * shape.inner) {
        for (std::int64_t i = 0; i < shape.inner; ++i) *to++ = from[i];
      }
    }
  });
  return moved;
}

void add_up(std::span<const float> values, const SumShape& shape, const AccumulateModel& model,
            std::span<float> sums) {
  constexpr std::int64_t side_by_side = 16;
  if (shape.outer == 1 || shape.inner >= side_by_side) {
    column_sums({.x = values.data(), .rows = shape.terms, .columns = shape.inner, .matrices = shape.outer},
                model, sums);
    return;
  }
  const std::vector<float> moved = terms_first(values, shape);
  column_sums({.x = moved.data(), .rows = shape.terms, .columns = shape.sums()}, model, sums);
}

nb::object sum(nb::handle array, std::optional<std::int64_t> axis, const std::string& order) {
  const AccumulateModel model = parse_accumulate_model(order);
  check_reduction_model(model);
  const FloatVec input(array, "sum");
  const std::span<const float> values = input.values();
  if (!axis) {
    const auto total = [&] {
      const nb::gil_scoped_release release;
      return halfscope::accumulate(values, model);
    }();
    return nb::cast(total);
  }
  const SumShape shape = shape_of(input.shape(), *axis);
  const auto elements = static_cast<std::size_t>(shape.sums());
  auto sums = std::make_unique<float[]>(elements);
  if (!values.empty()) {
    const nb::gil_scoped_release release;
    add_up(values, shape, model, {sums.get(), elements});
  }
  return to_array(std::move(sums), shape.result, array);
}

}  // namespace

void bind_sum(nb::module_& module) {
  module.def("sum", sum, nb::arg("array").none(), nb::arg("axis") = nb::none(), nb::kw_only(),
             nb::arg("order") = "fp32_sequential", sum_documentation);
}

}  // namespace halfscope::python
