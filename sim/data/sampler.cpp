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

Sampler::Sampler(std::int64_t example_count, std::int64_t batch_size, std::uint64_t seed)
    : batch_size_(batch_size), seed_(seed) {
  check(example_count, batch_size);
  order_.resize(static_cast<std::size_t>(example_count));
}

std::span<const std::int64_t> Sampler::indices(std::int64_t step) {
  if (step < 0) throw InvalidArgument(fmt::format("step {}: steps count from 0", step));
  shuffle(step / steps_per_epoch());
  const std::int64_t first = step % steps_per_epoch() * batch_size_;
  return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(batch_size_));
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
