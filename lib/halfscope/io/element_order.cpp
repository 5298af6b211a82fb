// Counts through the axes like an odometer, the fastest first.
#include <halfscope/io/detail/element_order.hpp>

#include <algorithm>
#include <numeric>

namespace halfscope {

std::vector<std::size_t> order_of_axes(const std::vector<std::int64_t>& shape,
                                       std::vector<std::size_t> axes) {
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  std::vector<std::size_t> wide;
  std::ranges::copy_if(axes, std::back_inserter(wide), [&](std::size_t axis) { return shape[axis] != 1; });
  if (is_empty || std::ranges::is_sorted(wide)) return {};
  // Axes of one element take the place that they have in any order: tensors of equal order compare equal.
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) wide.push_back(axis);
  }
  return wide;
}

std::vector<std::size_t> column_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> axes(shape.size());
  std::iota(axes.rbegin(), axes.rend(), std::size_t{0});
  return order_of_axes(shape, std::move(axes));
}

RowMajorIndex::RowMajorIndex(const StoredTensor& tensor) {
  std::vector<std::size_t> strides(tensor.shape.size(), 1);
  for (std::size_t axis = strides.size(); axis > 1; --axis)
    strides[axis - 2] = strides[axis - 1] * static_cast<std::size_t>(tensor.shape[axis - 1]);
  std::vector<std::size_t> order = tensor.axes;
  if (order.empty()) {
    order.resize(strides.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis)
    axes_.push_back({.extent = tensor.shape[*axis], .stride = strides[*axis]});
}

std::size_t RowMajorIndex::next() {
  const std::size_t here = place_;
  for (Axis& axis : axes_) {
    place_ += axis.stride;
    if (++axis.at < axis.extent) return here;
    place_ -= axis.stride * static_cast<std::size_t>(axis.extent);
    axis.at = 0;
  }
  return here;
}

}  // namespace halfscope
