// Reads verses, numbers their words and holds some of them out.
#include "sim/data/verses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>

#include "sim/data/dataset_options.hpp"
#include "sim/data/king_james.hpp"
#include "sim/data/tokenizer.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t fewest_verses = 12, most_held_out = 1000, run_length = 4;

std::vector<std::string> words_of(const std::vector<TokenLine>& lines) {
  std::vector<std::string> words;
  for (const TokenLine& line : lines) words.insert(words.end(), line.tokens.begin(), line.tokens.end());
  return words;
}

/// The vocabulary's token 0 is the rest, its token 1 the most frequent word.
std::int32_t bert_token(std::int32_t token) {
  return token == 0 ? BertTokens::unknown : token - 1 + BertTokens::first_word;
}

std::vector<bool> held_out(std::int64_t verse_count) {
  const std::int64_t runs = (verse_count + run_length - 1) / run_length;
  const std::int64_t tests = std::min(most_held_out, verse_count / 10);
  const std::int64_t held_runs = std::max<std::int64_t>(1, tests / run_length);
  std::vector<bool> result(static_cast<std::size_t>(verse_count), false);
  for (std::int64_t i = 0; i < held_runs; ++i) {
    const std::int64_t first = (2 * i + 1) * runs / (2 * held_runs) * run_length;
    for (std::int64_t verse = first; verse < std::min(first + run_length, verse_count); ++verse)
      result[static_cast<std::size_t>(verse)] = true;
  }
  return result;
}

}  // namespace

Verses read_verses(std::string_view data_set, const DatasetSpec& spec) {
  if (spec.whole(vocabulary_option) <= BertTokens::first_word) {
    throw InvalidArgument(fmt::format("vocabulary = {}: {} tokens are no words; give {} or more",
                                      spec.whole(vocabulary_option), +BertTokens::first_word,
                                      BertTokens::first_word + 1));
  }
  const auto [bytes, source] = read_text(data_set, spec.data);
  std::vector<TokenLine> lines = tokenise_lines(bytes, source);
  std::erase_if(lines, [](const TokenLine& line) { return std::ranges::none_of(line.tokens, is_word); });
  if (std::ssize(lines) < fewest_verses) {
    throw InvalidArgument(fmt::format("{}: {} lines with words are too few for data set {}; give {} or more",
                                      source, lines.size(), data_set, fewest_verses));
  }
  const Vocabulary vocabulary =
      number_words(words_of(lines), spec.whole(vocabulary_option) - BertTokens::first_word + 1);
  Verses verses{.all = {}, .token_count = vocabulary.size() - 1 + BertTokens::first_word, .source = source};
  auto next = vocabulary.tokens.begin();
  for (TokenLine& line : lines) {
    Verse& verse = verses.all.emplace_back(Verse{std::move(line.label), line.number, {}});
    for (std::size_t i = 0; i < line.tokens.size(); ++i) verse.tokens.push_back(bert_token(*next++));
  }
  return verses;
}

std::vector<std::int64_t> verses_of(Split split, std::int64_t verse_count) {
  const std::vector<bool> tests = held_out(verse_count);
  std::vector<std::int64_t> verses;
  for (std::int64_t i = 0; i < verse_count; ++i) {
    if (tests[static_cast<std::size_t>(i)] == (split == Split::test)) verses.push_back(i);
  }
  return verses;
}

void check_example(Split split, std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return;
  throw InvalidArgument(fmt::format("{} example {}: the text has 0 to {}", name_of(split), index, size - 1));
}

void check_sequence_length(std::int64_t sequence_length, std::int64_t least) {
  if (sequence_length >= least) return;
  throw InvalidArgument(fmt::format("sequence_length = {}: give {} or more", sequence_length, least));
}

}  // namespace halfscope
