// Fisher-Yates over counter-based random bits: an epoch's order needs no state from the epochs before it.
#include "sim/data/sampler.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {
namespace {

constexpr std::string_view stream_name = "sampler";

/// floor(random * bound / 2^64) for 64 random bits: uniform on [0, bound) to within bound / 2^64, bound <
/// 2^32.
std::uint64_t below(std::uint64_t bound, const RandomBlock& random) {
  return (random[0] * bound + (random[1] * bound >> 32)) >> 32;
}

void check(std::int64_t example_count, std::int64_t batch_size) {
  if (example_count < 1 || example_count > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument(fmt::format("{} examples: a sampler takes 1 to 2^32 - 1", example_count));
  }
  if (batch_size < 1 || batch_size > example_count) {
    throw InvalidArgument(
        fmt::format("batch size {}: expected 1 to {}, the number of examples", batch_size, example_count));
  }
}

}  // namespace

Sampler::Sampler(std::int64_t example_count, std::int64_t batch_size, std::uint64_t seed, BatchOrder order)
    : batch_size_(batch_size), seed_(seed), batch_order_(order) {
  check(example_count, batch_size);
  order_.resize(static_cast<std::size_t>(example_count));
  if (order == BatchOrder::neighbours) std::iota(order_.begin(), order_.end(), 0);
}

std::span<const std::int64_t> Sampler::indices(std::int64_t step) {
  if (step < 0) throw InvalidArgument(fmt::format("step {}: steps count from 0", step));
  std::int64_t first = 0;
  if (batch_order_ == BatchOrder::neighbours) {
    first = random_start(step);
  } else {
    shuffle(step / steps_per_epoch());
    first = step % steps_per_epoch() * batch_size_;
  }
  return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(batch_size_));
}

std::int64_t Sampler::random_start(std::int64_t step) const {
  const RandomStream stream{seed_, 0, site_hash(stream_name.data(), stream_name.size())};
  const auto starts = static_cast<std::uint64_t>(std::ssize(order_) - batch_size_ + 1);
  return static_cast<std::int64_t>(below(starts, stream.block(static_cast<std::uint64_t>(step))));
}

void Sampler::shuffle(std::int64_t epoch) {
  if (epoch == epoch_) return;
  const RandomStream stream{seed_, static_cast<std::uint32_t>(epoch),
                            site_hash(stream_name.data(), stream_name.size())};
  std::iota(order_.begin(), order_.end(), 0);
  for (std::size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[below(i + 1, stream.block(i))]);
  }
  epoch_ = epoch;
}

}  // namespace halfscope
