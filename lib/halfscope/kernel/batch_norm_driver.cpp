// Checks sizes and splits the rows of a batch normalisation over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/batch_norm.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t rows_per_task = 1024;

std::int64_t checked_rows(std::size_t elements, std::size_t channels, std::size_t other) {
  if (channels == 0 || elements % channels != 0 || elements != other) {
    throw RequestError(
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

}  // namespace

void normalise(std::span<const float> x, const ChannelAffine& channel, std::span<float> normalised,
               std::span<float> y) {
  const std::int64_t rows = checked_rows(x.size(), channel.mean.size(), y.size());
  checked_rows(x.size(), channel.mean.size(), normalised.size());
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
  for_row_groups(rows, channel.gamma.size(), [&](std::int64_t first, std::int64_t count) {
    dispatch_isa([&]<Isa isa>() {
      BatchNormLoops<isa>::normalise_gradient(normalised.data() + first, channel, means,
                                              gradient.data() + first, count);
    });
  });
}

}  // namespace halfscope
