// Reads the sentence pairs that a user gives.
#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/data/catalogue_pairs.hpp"
#include "sim/data/dataset_options.hpp"
#include "sim/data/sentence_pairs.hpp"
#include "sim/data/sentence_tokens.hpp"
#include "sim/data/unicode.hpp"

namespace halfscope {
namespace {

constexpr std::size_t one_pair_tested_in = 10;
constexpr std::size_t longest_sentence = 1000;  // tokens

std::vector<std::string> checked_side(std::string_view text, std::string_view side) {
  std::vector<std::string> tokens = sentence_tokens(text);
  if (tokens.empty()) throw InvalidArgument(fmt::format("an empty {}; give a sentence", side));
  if (tokens.size() > longest_sentence) {
    throw InvalidArgument(
        fmt::format("a {} of {} tokens; give at most {}", side, tokens.size(), longest_sentence));
  }
  return tokens;
}

SentencePair pair_in(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto tabs = std::ranges::count(line, '\t');
  if (tabs != 1) throw InvalidArgument(fmt::format("{} tabs; give SOURCE<tab>TARGET", tabs));
  const std::size_t tab = line.find('\t');
  return {checked_side(line.substr(0, tab), "source"), checked_side(line.substr(tab + 1), "target")};
}

SentencePairs read_lines_of_pairs(const std::filesystem::path& file) {
  SentencePairs pairs{.train = {}, .test = {}, .origin = printable(file)};
  read_lines(file, [&](std::size_t number, std::string_view line) {
    if (number == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    try {
      (number % one_pair_tested_in == 1 ? pairs.test : pairs.train).push_back(pair_in(line));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: line {}: {}", pairs.origin, number, error.what()));
    }
  });
  return pairs;
}

}  // namespace

SentencePairs read_sentence_pairs(const std::filesystem::path& data) {
  std::error_code none;
  SentencePairs pairs = std::filesystem::is_directory(data, none)
                            ? split_catalogues(read_catalogues(data), data)
                            : read_lines_of_pairs(data);
  if (pairs.train.size() + pairs.test.size() < 2) {
    throw InvalidArgument(fmt::format("{}: {} sentence pairs; give two or more", pairs.origin,
                                      pairs.train.size() + pairs.test.size()));
  }
  return pairs;
}

std::unique_ptr<Dataset> open_given_pairs(std::string_view dataset, const DatasetSpec& spec) {
  try {
    return make_sentence_pairs(read_sentence_pairs(spec.data), spec.whole(vocabulary_option));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("data set {}: {}", dataset, error.what()));
  }
}

}  // namespace halfscope
