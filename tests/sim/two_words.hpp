// Utterances of two words, for models of speech in tests.
#pragma once

#include "sim/data/speech.hpp"
#include "sim/models/model.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope {

using Labels = std::vector<std::int32_t>;

/// Utterances of two words, "a" and "b": the first filters are loud where one is spoken, the last where the
/// other is.
inline Utterance utterance_of(const Labels& words, std::int64_t frames, std::uint64_t seed) {
  Utterance utterance{uniform_array({frames, 40}, -0.3f, 0.3f, seed), words};
  const std::int64_t each = frames / std::ssize(words);
  for (std::int64_t t = 0; t < each * std::ssize(words); ++t) {
    const std::int64_t first = words[static_cast<std::size_t>(t / each)] == 1 ? 0 : 20;
    if (t % each < each / 4 || t % each >= each - each / 4) continue;
    for (std::int64_t f = first; f < first + 20; ++f)
      utterance.features[static_cast<std::size_t>(t * 40 + f)] += 1.5f;
  }
  return utterance;
}

inline std::unique_ptr<Dataset> two_words() {
  const std::vector<Labels> spoken{{1}, {2}, {1, 2}, {2, 1}, {1, 1}, {2, 2}, {2, 1, 2}, {1, 2, 1}};
  std::vector<Utterance> train, test;
  for (std::size_t i = 0; i < 48; ++i) {
    const Labels& words = spoken[i % spoken.size()];
    const std::int64_t frames = 12 * std::ssize(words) + static_cast<std::int64_t>(i % 5);
    (i < 40 ? train : test).push_back(utterance_of(words, frames, i));
  }
  return make_speech(Alphabet{"ab"}, std::move(train), std::move(test));
}

/// The logits of a batch.
inline Array logits_of(const Model& model, const Batch& batch, const PrecisionPolicy& policy,
                       Phase phase = Phase::evaluation) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, phase);
  return tape.value(model.forward(tape, batch).predictions[0]).clone();
}

}  // namespace halfscope
