// Numbers in English and in French: sentence pairs that need no corpus.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/random.hpp>

#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"
#include "sim/data/number_names.hpp"
#include "sim/data/sentence_pairs.hpp"

namespace halfscope {
namespace {

constexpr std::size_t number_count = 21'000;
constexpr std::int64_t tested_numbers = 1000;
constexpr float largest_over_smallest = 11.5129255f;  // log(10^6 / 10)

/// Distinct, from 10 to 10^6, with a logarithm that is uniform where not all numbers have come up.
std::vector<std::int64_t> numbers() {
  constexpr std::string_view name = "numbers_to_words";
  const RandomStream stream{0, 0, site_hash(name.data(), name.size())};
  std::vector<std::int64_t> result;
  std::unordered_set<std::int64_t> known;
  for (std::uint64_t i = 0; result.size() < number_count; ++i) {
    const auto drawn = static_cast<std::int64_t>(10 * exp(stream.uniform(i) * largest_over_smallest));
    const std::int64_t number = std::clamp<std::int64_t>(drawn, 10, 1'000'000);
    if (known.insert(number).second) result.push_back(number);
  }
  return result;
}

std::unique_ptr<Dataset> open_numbers_to_words(const DatasetSpec& spec) {
  if (!spec.data.empty()) return open_given_pairs("numbers_to_words", spec);
  std::vector<SentencePair> all;
  for (const std::int64_t number : numbers()) all.push_back({english_number(number), french_number(number)});
  SentencePairs pairs = split_at_random(std::move(all), tested_numbers);
  pairs.origin = "numbers_to_words";
  return make_sentence_pairs(std::move(pairs), spec.whole(vocabulary_option));
}

}  // namespace

constexpr DatasetKind numbers_to_words_kind{
    .data = DataKind::pairs, .open = open_numbers_to_words, .options = {vocabulary_option}};

}  // namespace halfscope
