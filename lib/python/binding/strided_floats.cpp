// Sees float32 arrays where they lie, and copies what does not suit.
#include "binding/strided_floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

Strided seen(const Dlpack& array) {
  Strided view{.data = static_cast<const float*>(array.data()), .extents = {}, .strides = {}};
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    view.extents.push_back(static_cast<std::int64_t>(array.shape(axis)));
    view.strides.push_back(view.extents.back() > 1 ? array.stride(axis) : 0);
  }
  return view;
}

Strided in_row_major_order(const FloatVec& copy) {
  Strided view{.data = copy.values().data(), .extents = {}, .strides = {}};
  for (const std::size_t extent : copy.shape()) view.extents.push_back(static_cast<std::int64_t>(extent));
  view.strides.resize(view.extents.size());
  std::int64_t stride = 1;
  for (std::size_t axis = view.extents.size(); axis-- > 0; stride *= view.extents[axis])
    view.strides[axis] = view.extents[axis] > 1 ? stride : 0;
  return view;
}

}  // namespace

StridedFloats::StridedFloats(nb::handle array, std::string_view argument, bool (*suits)(const Strided&))
    : array_(import_array(array, argument)) {
  if (float_type(array_) == DType::f32 && in_host_memory(array_)) {
    view_ = seen(array_);
    if (suits(view_)) return;
  }
  copy_.emplace(array, argument);
  view_ = in_row_major_order(*copy_);
}

}  // namespace halfscope::python
