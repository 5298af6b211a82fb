// Sentences with their translations as a data set, in the order of their length.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Tokens that are no words, the same for both languages: what stands behind a short sentence in a batch,
/// what begins and ends a sentence, and all words that have no token of their own.
inline constexpr std::int32_t padding_token = 0, start_token = 1, end_token = 2, unknown_token = 3;
inline constexpr std::int64_t special_tokens = 4;

/// Words of a sentence in either language.
struct SentencePair {
  std::vector<std::string> source, target;
};

struct SentencePairs {
  std::vector<SentencePair> train, test;
  std::string origin = "sentence pairs";  ///< as messages name them: a data set or a file
};

/// `all` in a random order that is the same on every machine; the first `tests` of them are the test split.
[[nodiscard]] SentencePairs split_at_random(std::vector<SentencePair> all, std::int64_t tests);

/// The pairs of a file with lines SOURCE<tab>TARGET in UTF-8, of which every tenth from the first on is a
/// test; see sim/data/sentence_tokens.hpp for their tokens. A folder has the pairs of its message catalogues;
/// see sim/data/catalogue_pairs.hpp. A tenth of these, but at most 1000, are the test split, chosen at
/// random. Throws InvalidArgument with the file, the line and what is wrong: no tab or several, a side
/// without a token or with more than 1000, NUL bytes, what is not UTF-8, and fewer than two pairs.
[[nodiscard]] SentencePairs read_sentence_pairs(const std::filesystem::path& data);

/// Batches of sentences, padded to the longest of the batch: see `Batch`. Both splits are sorted by length,
/// so that neighbours are alike. Each language has its own tokens, at most `vocabulary` of them: the special
/// ones, then the words of the training sentences, the most frequent first (of equally frequent ones, the
/// first in byte order). Says on stderr how many test pairs repeat the source or the target of a training
/// pair, if any do. Throws InvalidArgument where a split is empty, and for a vocabulary below 5.
[[nodiscard]] std::unique_ptr<Dataset> make_sentence_pairs(SentencePairs pairs, std::int64_t vocabulary);

/// Both in one, of `spec.data`; errors name the data set.
[[nodiscard]] std::unique_ptr<Dataset> open_given_pairs(std::string_view dataset, const DatasetSpec& spec);

}  // namespace halfscope
