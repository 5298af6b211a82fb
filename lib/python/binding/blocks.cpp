// halfscope.encode and decode, halfscope.round to block formats, and their products.
#include "binding/blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include <halfscope/core/error.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/tensor_format.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

#include "binding/along.hpp"
#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

using Codes = nb::ndarray<const std::uint32_t, nb::c_contig, nb::device::cpu>;

/// Values `to` each as an array; NumPy's, PyTorch's or JAX's as `like` is.
template <typename To, typename From>
nb::object array_of(std::span<const From> from, const Extents& shape, nb::handle like) {
  auto values = std::make_unique_for_overwrite<To[]>(from.size());
  std::ranges::transform(from, values.get(), [](From x) { return static_cast<To>(x); });
  return to_array(std::move(values), shape, like);
}

/// A scale for each block: in the place of the axis where a block has one row, else (rows, columns) of
/// blocks.
Extents scale_extents(const Along& along, const BlockFormat& format) {
  const MatrixShape grid = block_grid(along.matrix(), format.block);
  if (format.block.rows == 1) return along.with_length(grid.columns);
  return {static_cast<std::size_t>(grid.rows), static_cast<std::size_t>(grid.columns)};
}

nb::tuple encode_blocks(const FloatVec& input, const BlockFormat& format, const Along& along,
                        const RandomStream& stream, nb::handle like) {
  BlockCodes codes;
  {
    const nb::gil_scoped_release release;
    std::vector<float> moved;
    codes = quantise_blocks(along.rows_of(input.values(), moved), along.matrix(), format, stream);
    along.take_back(std::span(codes.elements), along.matrix().columns);
    const MatrixShape grid = block_grid(along.matrix(), format.block);
    if (format.block.rows == 1) along.take_back(std::span(codes.scales), grid.columns);
  }
  const std::span<const std::uint32_t> scales = codes.scales;
  const Extents extents = scale_extents(along, format);
  nb::object scale_array;
  if (format.scale() == ScaleFormat::fp32) {
    std::vector<float> numbers;
    for (const std::uint32_t bits : scales) numbers.push_back(from_bits(bits));
    scale_array = array_of<float>(std::span<const float>(numbers), extents, like);
  } else {
    scale_array = array_of<std::uint8_t>(scales, extents, like);
  }
  const nb::object tensor =
      format.tensor_scale == TensorScale::none ? nb::none() : nb::cast(codes.tensor.scale);
  return nb::make_tuple(
      array_of<std::uint8_t>(std::span<const std::uint8_t>(codes.elements), input.shape(), like), scale_array,
      tensor);
}

nb::object encode_elements(const FloatVec& input, const Quantizer& quantizer, const RandomStream& stream,
                           nb::handle like) {
  std::vector<float> rounded(input.values().size());
  round(input.values(), rounded, quantizer, stream);
  std::vector<std::uint32_t> codes;
  for (const float x : rounded) codes.push_back(encode(x, quantizer.format));
  const std::span<const std::uint32_t> all = codes;
  const int width = code_width(quantizer.format);
  if (width <= 8) return array_of<std::uint8_t>(all, input.shape(), like);
  if (width <= 16) return array_of<std::uint16_t>(all, input.shape(), like);
  return array_of<std::uint32_t>(all, input.shape(), like);
}

nb::tuple encode_array(nb::handle array, const std::string& name, std::int64_t axis, std::uint64_t seed,
                       std::uint32_t step) {
  const TensorFormat format = parse_tensor_format(name);
  const FloatVec input(array, "encode");
  const Along along(input.shape(), axis, "encode");
  const RandomStream stream{.seed = seed, .step = step};
  if (const auto* block = std::get_if<BlockFormat>(&format))
    return encode_blocks(input, *block, along, stream, array);
  return nb::make_tuple(encode_elements(input, std::get<Quantizer>(format), stream, array), nb::none(),
                        nb::none());
}

Extents extents_of(const Codes& codes) {
  Extents extents(codes.ndim());
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = codes.shape(i);
  return extents;
}

std::span<const std::uint32_t> span_of(const Codes& codes) {
  return {codes.data(), codes.size()};
}

/// The codes of blocks, in the order of the matrix.
BlockCodes blocks_of(const Codes& codes, const Codes& scales, const BlockFormat& format, std::int64_t axis) {
  const Along along(extents_of(codes), axis, "decode");
  const Extents wanted = scale_extents(along, format);
  if (extents_of(scales) != wanted) {
    throw InvalidArgument(fmt::format("decode: scales of shape ({}) for codes of shape ({}); give ({})",
                                      fmt::join(extents_of(scales), ", "), fmt::join(extents_of(codes), ", "),
                                      fmt::join(wanted, ", ")));
  }
  std::vector<std::uint32_t> moved;
  const auto elements = along.rows_of(span_of(codes), moved);
  BlockCodes all{.shape = along.matrix()};
  for (const std::uint32_t code : elements) all.elements.push_back(static_cast<std::uint8_t>(code));
  std::span<const std::uint32_t> ordered = span_of(scales);
  std::vector<std::uint32_t> moved_scales;
  if (format.block.rows == 1) ordered = Along(wanted, axis, "decode").rows_of(ordered, moved_scales);
  all.scales.assign(ordered.begin(), ordered.end());
  return all;
}

nb::object decode_array(const Codes& codes, const std::optional<Codes>& scales, float tensor_scale,
                        const std::string& name, std::int64_t axis, nb::handle like) {
  const TensorFormat format = parse_tensor_format(name);
  const Extents shape = extents_of(codes);
  auto values = std::make_unique_for_overwrite<float[]>(codes.size());
  const std::span out(values.get(), codes.size());
  const auto* block = std::get_if<BlockFormat>(&format);
  if (block == nullptr) {
    std::ranges::transform(span_of(codes), out.begin(),
                           [&](std::uint32_t code) { return decode(code, element_format(format)); });
    return to_array(std::move(values), shape, like);
  }
  if (!scales) throw InvalidArgument(fmt::format("decode: {} has a scale for each block; give scales", name));
  const Along along(shape, axis, "decode");
  BlockCodes all = blocks_of(codes, *scales, *block, axis);
  all.tensor = {tensor_scale, tensor_scale};
  decode_blocks(all, *block, out);
  along.take_back(out, all.shape.columns);
  return to_array(std::move(values), shape, like);
}

/// An operand of a product: codes in blocks of `format`, and their scales by the unit's blocks.
struct UnitOperand {
  FloatFormat element;
  BlockCodes codes;
  std::vector<std::uint32_t> scales;

  UnitOperand(BlockCodes quantised, const BlockFormat& format, const BlockScaledUnit& unit)
      : element(format.element.format),
        codes(std::move(quantised)),
        scales(scales_of_rows(codes, format.block, unit.block)) {}
  [[nodiscard]] BlockMatrix matrix() const {
    return {element, codes.shape.rows, codes.shape.columns, codes.elements, scales};
  }
};

nb::object multiply_blocks(nb::handle a, nb::handle b, const std::string& a_name, const std::string& b_name,
                           const std::string& kind_name) {
  const auto kind = parse_enum<BlockScaledKind>("block-scaled unit", kind_name);
  const BlockFormat a_format = parse_block_format(a_name), b_format = parse_block_format(b_name);
  const BlockScaledUnit& unit = block_scaled_unit(kind, a_format, b_format);
  const FloatVec left(a, "matmul"), right(b, "matmul");
  if (left.shape().empty() || right.shape().size() != 2 || left.shape().back() != right.shape()[0]) {
    throw InvalidArgument(fmt::format("matmul: shapes ({}) and ({}); {} multiplies (..., k) by (k, n)",
                                      fmt::join(left.shape(), ", "), fmt::join(right.shape(), ", "),
                                      kind_name));
  }
  const Along rows(left.shape(), -1, "matmul"), columns(right.shape(), 0, "matmul");
  Extents extents = left.shape();
  extents.back() = right.shape()[1];
  const auto count = static_cast<std::size_t>(rows.matrix().rows * columns.matrix().rows);
  auto product = std::make_unique_for_overwrite<float[]>(count);
  {
    const nb::gil_scoped_release release;
    std::vector<float> moved;
    const UnitOperand x(quantise_blocks(left.values(), rows.matrix(), a_format), a_format, unit);
    const UnitOperand y(quantise_blocks(columns.rows_of(right.values(), moved), columns.matrix(), b_format),
                        b_format, unit);
    const std::span c(product.get(), count);
    gemm_blocks(x.matrix(), y.matrix(), c, unit);
    const float scale = x.codes.tensor.scale * y.codes.tensor.scale;
    if (scale != 1) std::ranges::transform(c, c.begin(), [scale](float x) { return x * scale; });
  }
  return to_array(std::move(product), extents, a);
}

}  // namespace

nb::object round_in_blocks(nb::handle array, const std::string& name, std::int64_t axis,
                           const RandomStream& stream) {
  const BlockFormat format = parse_block_format(name);
  const FloatVec input(array, "round");
  const Along along(input.shape(), axis, "round");
  auto rounded = std::make_unique_for_overwrite<float[]>(input.values().size());
  {
    const nb::gil_scoped_release release;
    const std::span out(rounded.get(), input.values().size());
    std::vector<float> moved;
    round_blocks(along.rows_of(input.values(), moved), out, along.matrix(), format, stream);
    along.take_back(out, along.matrix().columns);
  }
  return to_array(std::move(rounded), input.shape(), array);
}

void bind_blocks(nb::module_& module) {
  module.def("encode", encode_array, nb::arg("array"), nb::arg("format"), nb::kw_only(), nb::arg("axis") = -1,
             nb::arg("seed") = 0, nb::arg("step") = 0,
             "Codes of the elements, scales of the blocks or None, and the tensor's scale or None.");
  module.def("decode", decode_array, nb::arg("codes"), nb::arg("scales").none(), nb::arg("tensor_scale"),
             nb::arg("format"), nb::kw_only(), nb::arg("axis") = -1, nb::arg("like"),
             "The numbers of codes and scales, both as uint32, as an array of like's framework.");
  module.def("matmul_blocks", multiply_blocks, nb::arg("a"), nb::arg("b"), nb::arg("a_format"),
             nb::arg("b_format"), nb::arg("unit"),
             "a (..., k) times b (k, n), in block formats, on a unit that block_units names.");
  module.def(
      "block_units",
      [] { return std::vector(enum_names<BlockScaledKind>.begin(), enum_names<BlockScaledKind>.end()); },
      "The block-scaled units' names.");
  module.def(
      "code_bits",
      [](const std::string& format) { return code_width(element_format(parse_tensor_format(format))); },
      nb::arg("format"), "Bits of an element's code.");
  module.def(
      "element_format",
      [](const std::string& format) { return to_string(element_format(parse_tensor_format(format))); },
      nb::arg("format"),
      "The format of an element: fp4_e2m1 of nvfp4. Raises ValueError for an unknown one.");
  module.def(
      "is_block_format",
      [](const std::string& format) {
        return std::holds_alternative<BlockFormat>(parse_tensor_format(format));
      },
      nb::arg("format"), "Whether blocks of the format have scales. Raises ValueError for an unknown one.");
  module.def(
      "look_alike_note",
      [](const std::string& format) { return look_alike_note(element_format(parse_tensor_format(format))); },
      nb::arg("format"), "A sentence about a format that others give another meaning; empty for all others.");
}

}  // namespace halfscope::python
