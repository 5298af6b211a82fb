// Sentences that are translated by reading them from their end, for translators in tests.
#pragma once

#include "sim/data/sentence_pairs.hpp"

namespace halfscope {

/// Sentences of 2 to 5 of four words, 800 in all, of which 80 are the test.
[[nodiscard]] inline std::unique_ptr<Dataset> reversals() {
  const std::vector<std::string> words{"ash", "beech", "cedar", "oak"};
  std::vector<SentencePair> all;
  for (std::size_t length = 2; length <= 5; ++length) {
    for (std::size_t i = 0; i < 200; ++i) {
      SentencePair pair;
      std::size_t rest = i * 37 + length;
      for (std::size_t word = 0; word < length; ++word) {
        pair.source.push_back(words[rest % 4]);
        rest = rest / 4 + rest % 4 * 61;
      }
      pair.target.assign(pair.source.rbegin(), pair.source.rend());
      all.push_back(std::move(pair));
    }
  }
  return make_sentence_pairs(split_at_random(std::move(all), 80), 20);
}

}  // namespace halfscope
