// The table of probabilities, and draws from it.
#include "sim/models/parts/word_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

/// log(1 + x) for 0 <= x <= 1 by the series of 2 atanh(x / (2 + x)): the same bits everywhere, which libm
/// does not promise.
double log_above_one(double x) {
  const double y = x / (2 + x), square = y * y;
  double power = y, sum = 0;
  for (int odd = 1; odd < 40; odd += 2, power *= square) sum += power / odd;
  return 2 * sum;
}

/// (1 - p)^n by squaring.
double missed(double p, std::uint64_t n) {
  double result = 1;
  for (double base = 1 - p; n > 0; n /= 2, base *= base) {
    if (n % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace

WordSampler::WordSampler(std::int64_t vocabulary, std::int64_t count) : count_(count) {
  if (count < 1 || count >= vocabulary) {
    throw InvalidArgument(
        fmt::format("{} sampled words of a vocabulary of {}: give at least 1, and fewer than there are",
                    count, vocabulary));
  }
  double sum = 0;
  for (std::int64_t k = 0; k < vocabulary; ++k) {
    sum += log_above_one(1 / static_cast<double>(k + 1));
    cumulative_.push_back(sum);
  }
  for (double& below : cumulative_) below /= sum;
}

WordSamples WordSampler::draw(const RandomStream& stream) const {
  WordSamples samples;
  std::vector<bool> drawn(cumulative_.size());
  std::uint64_t draws = 0;
  while (std::ssize(samples.words) < count_) {
    const double at = static_cast<double>(stream.bits(draws++)) * 0x1p-32;
    const auto word =
        static_cast<std::size_t>(std::ranges::upper_bound(cumulative_, at) - cumulative_.begin());
    if (drawn[word]) continue;
    drawn[word] = true;
    samples.words.push_back(static_cast<std::int32_t>(word));
  }
  double before = 0;
  for (const double up_to : cumulative_) {
    samples.log_expected.push_back(log(static_cast<float>(1 - missed(up_to - before, draws))));
    before = up_to;
  }
  return samples;
}

}  // namespace halfscope
