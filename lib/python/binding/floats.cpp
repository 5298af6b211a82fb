// Imports arrays by DLPack or the buffer protocol and exports them.
#include "binding/floats.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <halfscope/core/error.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/detail/gather.hpp>
#include <string>

namespace halfscope::python {
namespace nb = nanobind;
namespace {

std::string name_of(nb::dlpack::dtype type) {
  constexpr std::array kinds{"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  if (type.code >= kinds.size()) return fmt::format("{} bits of DLPack's type {}", type.bits, type.code);
  return fmt::format("{}{}", kinds[type.code], type.bits);
}

DType element_of(const Dlpack& array, std::string_view argument, Float64 wide) {
  const std::optional<DType> found = float_type(array);
  if (found && (*found != DType::f64 || wide == Float64::rounded_to_odd)) return *found;
  const nb::dlpack::dtype type = array.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  throw nb::type_error(
      fmt::format("{}: an array of {}; give float32, float16, bfloat16 or float8{}", argument, name_of(type),
                  wide == Float64::rounded_to_odd         ? ", or float64"
                  : code == nb::dlpack::dtype_code::Float ? ", for converting float64 rounds a first time"
                                                          : "")
          .c_str());
}

void require_reachable(const Dlpack& array, std::string_view argument, Where where) {
  if (in_host_memory(array)) return;
  const int device = array.device_type();
  const bool cuda = device == nb::device::cuda::value || device == nb::device::cuda_managed::value;
  if (cuda && where == Where::anywhere && describe_cuda_device()) return;
  throw nb::value_error(
      fmt::format("{}: an array in the memory of a device (DLPack device {}); bring it to the CPU first",
                  argument, device)
          .c_str());
}

/// Calls visit(offset in elements) for each element of `array` in row-major order.
template <typename Visit>
void for_elements(const Dlpack& array, Visit&& visit) {
  std::vector<std::size_t> index(array.ndim(), 0);
  std::int64_t offset = 0;
  for (std::size_t left = array.size(); left > 0; --left) {
    visit(offset);
    for (std::size_t axis = array.ndim(); axis-- > 0;) {
      offset += array.stride(axis);
      if (++index[axis] < array.shape(axis)) break;
      offset -= array.stride(axis) * static_cast<std::int64_t>(array.shape(axis));
      index[axis] = 0;
    }
  }
}

/// The elements of any strides, one after the other.
template <std::size_t width>
std::vector<std::byte> gather(const Dlpack& array) {
  const auto* data = static_cast<const std::byte*>(array.data());
  std::vector<std::byte> elements(array.size() * width);
  std::byte* next = elements.data();
  for_elements(array, [&](std::int64_t offset) {
    std::memcpy(next, data + offset * static_cast<std::int64_t>(width), width);
    next += width;
  });
  return elements;
}

std::vector<std::byte> gather(const Dlpack& array, std::size_t width) {
  return width == 2 ? gather<2>(array) : width == 4 ? gather<4>(array) : gather<8>(array);
}

void widen_in_threads(DType type, const std::byte* in, std::span<float> out) {
  constexpr std::int64_t grain = 1 << 16;
  parallel_for_ranges(static_cast<std::int64_t>(out.size()), grain,
                      [&](std::int64_t first, std::int64_t count) noexcept {
                        const auto start = static_cast<std::size_t>(first);
                        widen(type, in + start * bytes_per_element(type),
                              out.subspan(start, static_cast<std::size_t>(count)));
                      });
}

std::vector<float> read(const Dlpack& array, DType type) {
  std::vector<float> values(array.size());
  if (is_contiguous(array)) {
    widen_in_threads(type, static_cast<const std::byte*>(array.data()), values);
  } else {
    widen_in_threads(type, gather(array, bytes_per_element(type)).data(), values);
  }
  return values;
}

}  // namespace

FloatVec::FloatVec(nb::handle array, std::string_view argument, Float64 wide, Where where,
                   std::uintptr_t stream)
    : array_(import_array(array, argument)) {
  const DType type = element_of(array_, argument, wide);
  require_reachable(array_, argument, where);
  if (!in_host_memory(array_)) {
    array_ = import_for_stream(array, stream);
    on_device_.emplace(array_.device_id(), stream);
    read_on_device(type);
  } else if (type == DType::f32 && is_contiguous(array_)) {
    values_ = {static_cast<const float*>(array_.data()), array_.size()};
  } else {
    copy_ = read(array_, type);
    values_ = copy_;
  }
}

void FloatVec::read_on_device(DType type) {
  if (type == DType::f32 && is_contiguous(array_)) {
    values_ = {static_cast<const float*>(array_.data()), array_.size()};
    return;
  }
  if (array_.ndim() > StridedArray::most_axes)
    throw InvalidArgument(
        fmt::format("an array of {} axes; give at most {}", array_.ndim(), StridedArray::most_axes));
  StridedArray strided{
      .data = static_cast<const std::byte*>(array_.data()), .type = type, .axes = array_.ndim()};
  for (std::size_t axis = 0; axis < array_.ndim(); ++axis) {
    strided.extents.at(axis) = static_cast<std::int64_t>(array_.shape(axis));
    strided.strides.at(axis) = array_.stride(axis);
  }
  device_copy_ = Memory<float>(array_.size());
  cuda::gather(strided, device_copy_.values());
  values_ = device_copy_.values();
}

void require_same_device(const FloatVec& one, const FloatVec& other, std::string_view function) {
  if (one.device() != other.device())
    throw InvalidArgument(fmt::format("{}: one array is on a GPU, the other is not", function));
}

std::vector<std::size_t> FloatVec::shape() const {
  std::vector<std::size_t> extents(array_.ndim());
  for (std::size_t axis = 0; axis < extents.size(); ++axis) extents[axis] = array_.shape(axis);
  return extents;
}

template <typename T>
nb::object to_array(std::unique_ptr<T[]> values, const std::vector<std::size_t>& shape, nb::handle like) {
  T* data = values.get();
  const nb::capsule owner(values.release(), [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  const auto module = nb::cast<std::string>(nb::str(like.type().attr("__module__")));
  const auto make = [&]<typename Framework>(Framework) {
    return nb::cast(nb::ndarray<Framework, T>(data, shape.size(), shape.data(), owner));
  };
  if (module.starts_with("torch")) return make(nb::pytorch{});
  if (module.starts_with("jax")) return make(nb::jax{});
  return make(nb::numpy{});
}

template nb::object to_array(std::unique_ptr<std::int64_t[]>, const std::vector<std::size_t>&, nb::handle);
template nb::object to_array(std::unique_ptr<float[]>, const std::vector<std::size_t>&, nb::handle);
template nb::object to_array(std::unique_ptr<std::uint8_t[]>, const std::vector<std::size_t>&, nb::handle);
template nb::object to_array(std::unique_ptr<std::uint16_t[]>, const std::vector<std::size_t>&, nb::handle);
template nb::object to_array(std::unique_ptr<std::uint32_t[]>, const std::vector<std::size_t>&, nb::handle);

}  // namespace halfscope::python
