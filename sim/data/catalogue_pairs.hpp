// Sentence pairs from the message catalogues of a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/data/sentence_pairs.hpp"

namespace halfscope {

/// Sentence pairs of catalogues, and how many were read.
struct CataloguePairs {
  std::vector<SentencePair> pairs;
  std::int64_t catalogues = 0;  ///< read
  std::int64_t unreadable = 0;  ///< catalogues that are damaged or not in UTF-8, which are passed over
  std::string first_error;      ///< the first unreadable catalogue's
};

/// Messages of all files NAME.mo of the folder, in the order of the files' names: of one line with 3 to 16
/// tokens, of which three are words, and 3 to 18 tokens in the translation, which is not the same; of
/// messages with equal tokens the first. See `parse_catalogue` and `sentence_tokens`. Nothing where there is
/// no such folder.
[[nodiscard]] CataloguePairs read_catalogues(const std::filesystem::path& folder);

/// The pairs of `folder`, a tenth of them, but at most 1000, as the test split, chosen at random. Their
/// origin is "3 message catalogues (1 unreadable) in FOLDER".
[[nodiscard]] SentencePairs split_catalogues(CataloguePairs read, const std::filesystem::path& folder);

/// Sentence pairs of the first folder that has 10,000. Throws InvalidArgument, which names the packages that
/// have catalogues, where none has.
[[nodiscard]] SentencePairs read_first_catalogues(const std::vector<std::filesystem::path>& folders);

}  // namespace halfscope
