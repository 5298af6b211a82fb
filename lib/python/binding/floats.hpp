// Arrays of a Python caller as spans of floats, and arrays handed back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <halfscope/device/device.hpp>
#include <halfscope/device/memory.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <halfscope/core/dtype.hpp>

#include "binding/array_source.hpp"

namespace halfscope::python {

/// Treatment of float64, which float32 cannot hold.
enum class Float64 {
  refused,
  rounded_to_odd,  ///< see `widen`: counts and what-ifs of formats with up to 22 significand bits stay exact
};

/// Where the elements may be.
enum class Where {
  host,
  anywhere,  ///< on a GPU too, where the build has CUDA and the machine a driver
};

/// A stream of the caller's that is given to DLPack; 1 is the legacy default stream, which every GPU has.
inline constexpr std::uintptr_t default_stream = 1;

/// The elements of an array in row-major order. Contiguous float32 is seen where it lies; float16, bfloat16
/// and other strides are read into a copy, which changes no value. Where they are on a GPU that is the active
/// device of this thread, and `stream` what it queues to, for the life of the object.
class FloatVec {
 public:
  /// `array` is anything with DLPack or the buffer protocol, of any shape, read-only or not. Throws TypeError
  /// for what is no array or not of these types, ValueError for a tensor without its elements and for memory
  /// of another device; `argument` is its name in the message.
  FloatVec(nanobind::handle array, std::string_view argument, Float64 wide = Float64::refused,
           Where where = Where::host, std::uintptr_t stream = default_stream);

  [[nodiscard]] std::span<const float> values() const { return values_; }
  [[nodiscard]] std::vector<std::size_t> shape() const;
  /// Number of the GPU, if the elements are on one.
  [[nodiscard]] int gpu() const { return array_.device_id(); }
  [[nodiscard]] Device device() const { return on_device_ ? Device::cuda : Device::cpu; }

 private:
  struct OnDevice {
    OnDevice(int gpu, std::uintptr_t queue) : stream(gpu, queue), device(Device::cuda) {}
    StreamScope stream;
    DeviceScope device;
  };

  void read_on_device(DType type);

  Dlpack array_;
  std::optional<OnDevice> on_device_;
  std::vector<float> copy_;
  Memory<float> device_copy_;
  std::span<const float> values_;
};

/// Throws InvalidArgument where the two are not on the same device.
void require_same_device(const FloatVec& one, const FloatVec& other, std::string_view function);

/// `values` as an array of `shape`: a PyTorch tensor or JAX array where `like` is one, else NumPy's. Elements
/// are float, int64 or unsigned integers of 8, 16 or 32 bits.
template <typename T>
[[nodiscard]] nanobind::object to_array(std::unique_ptr<T[]> values, const std::vector<std::size_t>& shape,
                                        nanobind::handle like);

}  // namespace halfscope::python
