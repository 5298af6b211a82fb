// Checks sizes and splits the rows of a batch normalisation over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/norm_element.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t rows_per_task = 1024;

std::int64_t checked_rows(std::size_t elements, std::size_t channels, std::size_t other) {
  if (channels == 0 || elements % channels != 0 || elements != other) {
    throw InvalidArgument(
        fmt::format("batch norm: {} and {} elements are no rows of {} channels", elements, other, channels));
  }
  return static_cast<std::int64_t>(elements / channels);
}

/// Calls body(first element, rows) for consecutive groups of rows.
template <typename Body>
void for_row_groups(std::int64_t rows, std::size_t channels, Body&& body) {
  parallel_for_ranges(rows, rows_per_task, [&](std::int64_t first, std::int64_t count) {
    body(first * static_cast<std::int64_t>(channels), count);
  });
}

void check_channels(std::size_t a, std::size_t b) {
  if (a != b) throw InvalidArgument(fmt::format("batch norm: {} and {} channels differ", a, b));
}

}  // namespace

void inverse_deviations(std::span<const float> variance, float epsilon, std::span<float> result) {
  if (variance.size() != result.size()) {
    throw InvalidArgument(
        fmt::format("inverse_deviations: sizes {} and {} differ", variance.size(), result.size()));
  }
  if (active_device() == Device::cuda) return cuda::inverse_deviations(variance, epsilon, result);
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] = norm_element::inverse_deviation(variance[c], epsilon);
}

void update_running(const RunningUpdate& update, std::span<float> running) {
  check_channels(update.batch.size(), running.size());
  if (active_device() == Device::cuda) return cuda::update_running(update, running);
  for (std::size_t c = 0; c < running.size(); ++c) {
    running[c] = norm_element::moved(running[c], update.batch[c], update.factor, update.momentum);
  }
}

void normalise(const ConstArrayView& input, const ChannelAffine& channel, std::span<float> normalised,
               std::span<float> y) {
  const bool on_device = active_device() == Device::cuda;
  const std::size_t size = input.size(), channels = channel.mean.size();
  const std::int64_t rows = checked_rows(size, channels, on_device && y.empty() ? size : y.size());
  checked_rows(size, channels, on_device && normalised.empty() ? size : normalised.size());
  if (on_device) return cuda::normalise(input, channel, normalised, y);
  const std::span<const float> x = input.floats();
  for_row_groups(rows, channel.mean.size(), [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      BatchNormLoops<isa>::normalise(x.data() + first, channel, normalised.data() + first, y.data() + first,
                                     count);
    });
  });
}

void normalise_gradient(std::span<const float> normalised, const ChannelAffine& channel,
                        const ChannelGradientMeans& means, std::span<float> gradient) {
  const std::int64_t rows = checked_rows(gradient.size(), channel.gamma.size(), normalised.size());
  if (active_device() == Device::cuda) return cuda::normalise_gradient(normalised, channel, means, gradient);
  for_row_groups(rows, channel.gamma.size(), [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      BatchNormLoops<isa>::normalise_gradient(normalised.data() + first, channel, means,
                                              gradient.data() + first, count);
    });
  });
}

}  // namespace halfscope
