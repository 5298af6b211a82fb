// halfscope.dot.
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* documentation = R"doc(The dot product as a machine adds it up, bit for bit.

a, b: (n), float32, float16 or bfloat16.
order: one of `halfscope list orders`, such as "fp32_fused", "fp32_sequential", "fp16_sequential",
    "fp16_chunked(64)", "fp32_pairwise", "tensor_core(hopper)", "bf16_tensor_core(ampere)". A tensor core rounds a
    and b to its operands' format first.
start: what the sum starts from.

Returns a float. Raises ValueError for an unknown order, other than one axis, and arrays of different sizes;
TypeError as `round` does.)doc";

void check_shapes(const FloatVec& a, const FloatVec& b) {
  if (a.shape().size() != 1 || b.shape().size() != 1) {
    throw InvalidArgument(
        fmt::format("dot: arrays of {} and {} axes; give one axis each", a.shape().size(), b.shape().size()));
  }
  if (a.values().size() != b.values().size()) {
    throw InvalidArgument(fmt::format("dot: {} and {} elements; give as many of one as of the other",
                                      a.values().size(), b.values().size()));
  }
}

float dot(nb::handle a, nb::handle b, const std::string& order, float start) {
  const AccumulateModel model = parse_accumulate_model(order);
  const FloatVec left(a, "dot: a"), right(b, "dot: b");
  check_shapes(left, right);
  const nb::gil_scoped_release release;
  return accumulate_products_from(start, left.values(), right.values(), model);
}

}  // namespace

void bind_dot(nb::module_& module) {
  module.def("dot", dot, nb::arg("a").none(), nb::arg("b").none(), nb::kw_only(),
             nb::arg("order") = "fp32_fused", nb::arg("start") = 0.0f, documentation);
}

}  // namespace halfscope::python
