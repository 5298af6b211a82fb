// Array storage: aligned buffers that are kept for reuse, since a training step allocates the same sizes
// again.
#include <halfscope/core/array.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

namespace halfscope {
namespace {

constexpr std::size_t alignment = 64;

/// Free buffers by size. Fresh pages cost more than the arithmetic done on them; a step's sizes recur
/// exactly.
class BufferPool {
 public:
  float* take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      auto& free = free_[bytes];
      if (!free.empty()) {
        float* memory = free.back();
        free.pop_back();
        return memory;
      }
    }
    return static_cast<float*>(::operator new (bytes, std::align_val_t{alignment}));
  }

  void give_back(float* memory, std::size_t bytes) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      free_[bytes].push_back(memory);
    } catch (const std::bad_alloc&) {
      ::operator delete (memory, std::align_val_t{alignment});
    }
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<float*>> free_;
};

/// Never destroyed: an array may outlive every static object.
BufferPool& pool() {
  static auto* const instance = new BufferPool;
  return *instance;
}

std::size_t padded_bytes(std::size_t elements) {
  return (elements * sizeof(float) + alignment - 1) / alignment * alignment;
}

}  // namespace

std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw RequestError("negative extent in shape " + to_string(shape));
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count)) {
      throw RequestError("shape " + to_string(shape) + " has more elements than memory can hold");
    }
  }
  return count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Array::Array(Shape shape, Device device)
    : shape_(std::move(shape)), size_(element_count(shape_)), device_(device) {
  if (device == Device::cuda)
    throw RequestError("--device cuda: this halfscope was built without CUDA training; use --device cpu");
  const std::size_t bytes = padded_bytes(size_);
  if (bytes != 0) data_ = {pool().take(bytes), detail::ReleaseBuffer{bytes}};
}

Array Array::zeros(Shape shape) {
  Array array(std::move(shape));
  if (!array.empty()) std::memset(array.data(), 0, array.size() * sizeof(float));
  return array;
}

Array Array::from(Shape shape, std::initializer_list<float> values) {
  Array array(std::move(shape));
  if (values.size() != array.size()) {
    throw RequestError(fmt::format("{} values given for shape {}", values.size(), to_string(array.shape())));
  }
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

Array Array::clone() const {
  Array copy(shape_, device_);
  if (!empty()) std::memcpy(copy.data(), data(), size_ * sizeof(float));
  return copy;
}

void Array::reshape(Shape shape) {
  if (element_count(shape) != size_) {
    throw RequestError(fmt::format("cannot reshape {} to {}", to_string(shape_), to_string(shape)));
  }
  shape_ = std::move(shape);
}

void detail::ReleaseBuffer::operator()(float* memory) const noexcept {
  if (memory != nullptr) pool().give_back(memory, bytes);
}

}  // namespace halfscope
