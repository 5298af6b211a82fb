// Checks sizes and splits the rows that pooling makes over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/pool.hpp"
#include "lib/nn/pool_element.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t largest_window = 15;  // whose pixels a byte tells apart

std::size_t elements(const ImageShape& shape) {
  return static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels);
}

Pooling checked(const char* operation, const ImageShape& shape, const PoolWindow& window, std::size_t full,
                std::size_t pooled) {
  const ImageShape small = checked_pooled_shape(operation, shape, window);
  if (full != elements(shape) || pooled != elements(small)) {
    throw InvalidArgument(
        fmt::format("{}: the arrays do not have the sizes that the shape asks for", operation));
  }
  return {shape, small, window};
}

void check_winners(const char* operation, std::size_t pooled, std::size_t winners) {
  if (pooled == winners) return;
  throw InvalidArgument(fmt::format("{}: {} winners of {} windows", operation, winners, pooled));
}

/// Calls body(row) with the loops of the instruction set for each row of all images of `shape`.
template <typename Body>
void for_rows(const ImageShape& shape, const Body& body) {
  parallel_for(shape.batch * shape.height, [&](std::int64_t row) noexcept {
    dispatch_isa([&]<Isa isa>() { body(PoolLoops<isa>{}, row); });
  });
}

}  // namespace

ImageShape checked_pooled_shape(std::string_view where, const ImageShape& shape, const PoolWindow& window) {
  const bool valid = window.size >= 1 && window.size <= largest_window && window.stride >= 1 &&
                     window.padding >= 0 && window.padding < window.size;
  if (!valid) {
    throw InvalidArgument(fmt::format(
        "{}: windows of {} with stride {} and padding {}: give a size of 1 to {}, a stride of 1 or "
        "more and a padding below the size",
        where, window.size, window.stride, window.padding, largest_window));
  }
  const ImageShape pooled = pooled_shape(shape, window);
  if (pooled.height >= 1 && pooled.width >= 1) return pooled;
  throw InvalidArgument(fmt::format("{}: windows of {} with padding {} have no place in {}x{} images", where,
                                    window.size, window.padding, shape.height, shape.width));
}

void max_pool(const ConstArrayView& images, const ImageShape& shape, const PoolWindow& window,
              const ArrayView& pooled, std::span<std::uint8_t> winner) {
  const Pooling pooling = checked("max_pool", shape, window, images.size(), pooled.size());
  check_winners("max_pool", pooled.size(), winner.size());
  if (active_device() == Device::cuda) return cuda::max_pool(images, shape, window, pooled, winner);
  const float* const x = images.floats().data();
  float* const y = pooled.floats().data();
  for_rows(pooling.pooled,
           [&](auto loops, std::int64_t row) { loops.max(pooling, row, x, y, winner.data()); });
}

void max_pool_gradient(const ConstArrayView& of_pooled, const ImageShape& shape, const PoolWindow& window,
                       std::span<const std::uint8_t> winner, std::span<float> x_gradient) {
  const Pooling pooling = checked("max_pool_gradient", shape, window, x_gradient.size(), of_pooled.size());
  check_winners("max_pool_gradient", of_pooled.size(), winner.size());
  if (active_device() == Device::cuda)
    return cuda::max_pool_gradient(of_pooled, shape, window, winner, x_gradient);
  const float* const y_gradient = of_pooled.floats().data();
  for_rows(shape, [&](auto loops, std::int64_t row) {
    loops.max_gradient(pooling, row, y_gradient, winner.data(), x_gradient.data());
  });
}

void average_pool(const ConstArrayView& images, const ImageShape& shape, const PoolWindow& window,
                  AverageOver over, std::span<float> y) {
  const Pooling pooling = checked("average_pool", shape, window, images.size(), y.size());
  if (active_device() == Device::cuda) return cuda::average_pool(images, shape, window, over, y);
  const float* const x = images.floats().data();
  for_rows(pooling.pooled,
           [&](auto loops, std::int64_t row) { loops.average(pooling, row, over, x, y.data()); });
}

void average_pool_gradient(const ConstArrayView& of_pooled, const ImageShape& shape, const PoolWindow& window,
                           AverageOver over, std::span<float> x_gradient) {
  const Pooling pooling =
      checked("average_pool_gradient", shape, window, x_gradient.size(), of_pooled.size());
  if (active_device() == Device::cuda)
    return cuda::average_pool_gradient(of_pooled, shape, window, over, x_gradient);
  const float* const y_gradient = of_pooled.floats().data();
  for_rows(shape, [&](auto loops, std::int64_t row) {
    loops.average_gradient(pooling, row, over, y_gradient, x_gradient.data());
  });
}

}  // namespace halfscope
