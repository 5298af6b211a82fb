// Shapes, and copies of arrays.
#include <halfscope/device/array.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfscope {
std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw InvalidArgument("negative extent in shape " + to_string(shape));
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count)) {
      throw InvalidArgument("shape " + to_string(shape) + " has more elements than memory can hold");
    }
  }
  return count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Array::Array(Shape shape, Device device) : Array(std::move(shape), DType::f32, device) {}

Array::Array(Shape shape, DType storage, Device device)
    : shape_(std::move(shape)),
      storage_(storage),
      memory_(element_count(shape_) * bytes_per_element(storage), device) {}

Array Array::zeros(Shape shape, DType storage) {
  Array array(std::move(shape), storage);
  detail::zero_memory(array.memory_.data(), array.memory_.size(), array.device());
  return array;
}

Array Array::from(Shape shape, std::initializer_list<float> values) {
  Array array(std::move(shape));
  if (values.size() != array.size()) {
    throw InvalidArgument(
        fmt::format("{} values given for shape {}", values.size(), to_string(array.shape())));
  }
  detail::copy_memory(array.data(), array.device(), values.begin(), Device::cpu,
                      values.size() * sizeof(float));
  return array;
}

Array Array::to(Device device) const {
  Array copy(shape_, storage_, device);
  detail::copy_memory(copy.memory_.data(), device, memory_.data(), this->device(), memory_.size());
  return copy;
}

float Array::item() const {
  if (size() != 1) throw InvalidArgument("an array of shape " + to_string(shape_) + " is no single number");
  float value = 0;
  detail::copy_memory(&value, Device::cpu, data(), device(), sizeof value);
  return value;
}

void Array::reshape(Shape shape) {
  if (element_count(shape) != size()) {
    throw InvalidArgument(fmt::format("cannot reshape {} to {}", to_string(shape_), to_string(shape)));
  }
  shape_ = std::move(shape);
}

}  // namespace halfscope
