// halfscope.round.
#include <halfscope/kernel/cast/round.hpp>

#include <nanobind/stl/string.h>

#include <halfscope/format/block_format.hpp>

#include "binding/bindings.hpp"
#include "binding/blocks.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* round_documentation = "Rounds as halfscope.round does, whatever becomes of gradients.";

/// Into a tensor that PyTorch makes, since it knows when its memory is free again.
nb::object round_on_gpu(const FloatVec& input, const Quantizer& quantizer, const RandomStream& stream,
                        nb::handle like) {
  const auto module = nb::cast<std::string>(nb::str(like.type().attr("__module__")));
  if (!module.starts_with("torch"))
    throw InvalidArgument("round: on a GPU only tensors of PyTorch; bring the array to the CPU first");
  const nb::module_ torch = nb::module_::import_("torch");
  nb::object rounded = torch.attr("empty")(like.attr("shape"), nb::arg("dtype") = torch.attr("float32"),
                                           nb::arg("device") = like.attr("device"));
  const nb::object capsule = rounded.attr("__dlpack__")(nb::arg("stream") = default_stream);
  const auto output = nb::cast<nb::ndarray<float, nb::device::cuda>>(capsule);
  const nb::gil_scoped_release release;
  round(input.values(), {output.data(), output.size()}, quantizer, stream);
  synchronize_device();
  return rounded;
}

nb::object round_array(nb::handle array, const std::string& quantizer, std::int64_t axis, std::uint64_t seed,
                       std::uint32_t step) {
  if (is_block_format_name(quantizer))
    return round_in_blocks(array, quantizer, axis, {.seed = seed, .step = step});
  const Quantizer parsed = parse_quantizer(quantizer);
  const FloatVec input(array, "round", Float64::refused, Where::anywhere);
  const std::span<const float> values = input.values();
  if (input.device() == Device::cuda) return round_on_gpu(input, parsed, {.seed = seed, .step = step}, array);
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
             nb::arg("axis") = -1, nb::arg("seed") = 0, nb::arg("step") = 0, round_documentation);
}

}  // namespace halfscope::python
