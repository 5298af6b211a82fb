// Lines of a text as examples of their own: their tokens, and which of them are held out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Tokens that are no words: what stands behind a short example, all words that have no token of their own,
/// what begins an example, what ends a sentence, and what hides a word. Words follow, from `first_word`.
struct BertTokens {
  static constexpr std::int32_t padding = 0, unknown = 1, start = 2, separator = 3, mask = 4, first_word = 5;
};

struct Verse {
  std::string label;      ///< "Ge1:1"; empty where its line has none
  std::int64_t line = 0;  ///< in its text, from 1
  std::vector<std::int32_t> tokens;
};

struct Verses {
  std::vector<Verse> all;
  std::int64_t token_count = 0;  ///< different tokens, with `BertTokens`
  std::string source;            ///< the text's name in messages
};

/// The lines of the text that `spec` names that have words in them. Throws InvalidArgument, naming the data
/// set, for a text that is not there, no UTF-8 or has fewer than 12 such lines, and for a vocabulary below 6.
[[nodiscard]] Verses read_verses(std::string_view data_set, const DatasetSpec& spec);

/// The verses of a split, by number and in order. A tenth of them, at most 1000, are held out for tests: runs
/// of four neighbours at equal distances.
[[nodiscard]] std::vector<std::int64_t> verses_of(Split split, std::int64_t verse_count);

/// Throws InvalidArgument for an index out of [0, size).
void check_example(Split split, std::int64_t index, std::int64_t size);

/// Throws InvalidArgument for a sequence_length below `least`.
void check_sequence_length(std::int64_t sequence_length, std::int64_t least);

}  // namespace halfscope
