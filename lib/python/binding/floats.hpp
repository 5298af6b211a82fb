// Arrays of a Python caller as spans of floats, and arrays handed back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace halfscope::python {

/// What becomes of float64, which float32 cannot hold.
enum class Float64 {
  refused,
  rounded_to_odd,  ///< see `widen`: counts and what-ifs of formats with up to 22 significand bits stay exact
};

/// The elements of an array in row-major order. Contiguous float32 is seen where it lies; float16, bfloat16
/// and other strides are read into a copy, which changes no value.
class Floats {
 public:
  /// `array` is anything with DLPack or the buffer protocol, of any shape, read-only or not. Throws TypeError
  /// for what is no array or not of these types, ValueError for memory of another device; `argument` is its
  /// name in the message.
  Floats(nanobind::handle array, std::string_view argument, Float64 wide = Float64::refused);

  [[nodiscard]] std::span<const float> values() const { return values_; }
  [[nodiscard]] std::vector<std::size_t> shape() const;

 private:
  nanobind::ndarray<nanobind::ro> array_;
  std::vector<float> copy_;
  std::span<const float> values_;
};

/// `values` as a float32 array of `shape`: a PyTorch tensor or JAX array where `like` is one, else NumPy's.
[[nodiscard]] nanobind::object to_array(std::unique_ptr<float[]> values,
                                        const std::vector<std::size_t>& shape, nanobind::handle like);

}  // namespace halfscope::python
