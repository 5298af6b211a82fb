// Quantises a tensor along the axis that a product sums over: on the host, wherever the tensor is.
#include "sim/layers/operands.hpp"

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

/// Each matrix of (rows, columns) turned into (columns, rows).
Array turned(const Array& matrices, std::int64_t rows, std::int64_t columns) {
  Array result(matrices.shape());
  const auto size = static_cast<std::size_t>(rows * columns);
  for (std::size_t first = 0; first < matrices.size(); first += size)
    transpose(matrices.view().part(first, size), rows, columns, result.view().part(first, size));
  return result;
}

bool is_square_tile(const LayerOperands::Format& format) {
  const auto* blocks = format ? std::get_if<BlockFormat>(&format->format) : nullptr;
  return blocks != nullptr && blocks->block.rows == blocks->block.columns;
}

}  // namespace

Array Operands::image(const CastScope& casts, const OperandSource& source, const OperandUse& use,
                      std::int32_t part) const {
  const LayerOperands::Format& format = formats_[use.place];
  if (!format || !use.wanted) return {};
  const Device device = source.tensor.device();
  const DeviceScope on_host(Device::cpu);
  const Array copy = device == Device::cpu ? Array{} : source.tensor.to(Device::cpu);
  const Array& tensor = seen(copy, source.tensor);
  const bool turns = use.axis == SummedAxis::rows;
  Array image = turns ? turned(tensor, source.rows, source.columns) : tensor.clone();
  const std::int64_t summed = turns ? source.rows : source.columns;
  casts.quantise({.layer = layer_,
                  .place = use.place,
                  .part = part,
                  .shape = {static_cast<std::int64_t>(image.size()) / summed, summed},
                  .values = image.values()},
                 *format);
  if (turns) image = turned(image, source.columns, source.rows);
  return device == Device::cpu ? std::move(image) : image.to(device);
}

OperandImages Operands::images(const CastScope& casts, const OperandSource& source, const OperandUse& first,
                               OperandUse second) const {
  if (is_square_tile(formats_[first.place]) && formats_[first.place] == formats_[second.place])
    second.axis = first.axis;
  Array image = this->image(casts, source, first);
  return {std::move(image), this->image(casts, source, second)};
}

}  // namespace halfscope
