// halfscope.round.
#include <halfscope/kernel/round.hpp>

#include <nanobind/stl/string.h>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* documentation = R"doc(Rounds every element to a format.

array: any shape, float32, float16 or bfloat16; NumPy, PyTorch (CPU), JAX (CPU), or what speaks DLPack.
quantizer: "FORMAT[/ROUNDING][/OVERFLOW]", such as "fp16", "fp8_e4m3/stochastic/saturate", "e5m7/toward_zero".
seed, step: which random numbers stochastic rounding draws; the same ones give the same bits.

Returns a float32 array of the same shape and framework, which holds the numbers of any format exactly.
Raises TypeError for float64 (rounding twice is not rounding), integers and what is no array; ValueError for an
unknown quantizer and for arrays in a GPU's memory.)doc";

nb::object round_array(nb::handle array, const std::string& quantizer, std::uint64_t seed,
                       std::uint32_t step) {
  const Quantizer parsed = parse_quantizer(quantizer);
  const Floats input(array, "round");
  const std::span<const float> values = input.values();
  auto rounded = std::make_unique_for_overwrite<float[]>(values.size());
  {
    const nb::gil_scoped_release release;
    round(values, {rounded.get(), values.size()}, parsed, {.seed = seed, .step = step});
  }
  return to_array(std::move(rounded), input.shape(), array);
}

}  // namespace

void bind_round(nb::module_& module) {
  module.def("round", round_array, nb::arg("array").none(), nb::arg("quantizer"), nb::kw_only(),
             nb::arg("seed") = 0, nb::arg("step") = 0, documentation);
}

}  // namespace halfscope::python
