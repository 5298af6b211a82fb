// Samples of a vocabulary whose words are ordered by frequency: the negatives of a sampled softmax.
#pragma once

#include <cstdint>
#include <vector>

#include <halfscope/core/random.hpp>

namespace halfscope {

/// Different words, and for any word the logarithm of how often one expects it among them.
struct WordSamples {
  std::vector<std::int32_t> words;
  std::vector<float> log_expected;  // (vocabulary)
};

/// Draws word k with probability log((k + 2) / (k + 1)) / log(vocabulary + 1), as TensorFlow's
/// log_uniform_candidate_sampler does, until `count` different ones are found.
class WordSampler {
 public:
  /// Throws InvalidArgument unless 1 <= count < vocabulary.
  WordSampler(std::int64_t vocabulary, std::int64_t count);
  /// A function of the stream alone. The expected count of a word of probability p after n draws is
  /// 1 - (1 - p)^n.
  [[nodiscard]] WordSamples draw(const RandomStream& stream) const;

 private:
  std::vector<double> cumulative_;  // (vocabulary): up to 1
  std::int64_t count_;
};

}  // namespace halfscope
