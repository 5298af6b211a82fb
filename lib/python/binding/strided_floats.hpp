// Arrays of a Python caller with their strides.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "binding/floats.hpp"

namespace halfscope::python {

/// Extents and strides of an array, in elements, one of each per axis.
struct Strided {
  const float* data = nullptr;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;  ///< 0 of an axis of one element or none
};

/// The elements of an array in CPU memory. float32 is seen where it lies if `suits` says so of its strides;
/// everything else that FloatVec reads is copied in row-major order. Throws as FloatVec does.
class StridedFloats {
 public:
  StridedFloats(nanobind::handle array, std::string_view argument, bool (*suits)(const Strided&));

  [[nodiscard]] const Strided& view() const { return view_; }

 private:
  Dlpack array_;
  std::optional<FloatVec> copy_;
  Strided view_;
};

}  // namespace halfscope::python
