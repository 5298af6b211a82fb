// Pairs of verses with masked words, for the pre-training of BERT.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <halfscope/core/error.hpp>
#include <halfscope/core/random.hpp>

#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"
#include "sim/data/verses.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t masked_percent = 15;
constexpr std::string_view pair_stream = "masked_verses.pair", mask_stream = "masked_verses.mask";

RandomStream pair_stream_of(Split split, std::int64_t example, std::string_view purpose) {
  return {static_cast<std::uint64_t>(example), static_cast<std::uint32_t>(split),
          site_hash(purpose.data(), purpose.size())};
}

/// Verses of a split, and which of them are followed by another of it.
struct SplitVerses {
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> first;  ///< places in `numbers` of the first verses of pairs
};

SplitVerses split_verses(Split split, std::int64_t count) {
  SplitVerses verses{verses_of(split, count), {}};
  for (std::size_t i = 0; i + 1 < verses.numbers.size(); ++i)
    if (verses.numbers[i + 1] == verses.numbers[i] + 1) verses.first.push_back(i);
  return verses;
}

/// One example before its words are masked.
struct SentencesOfPair {
  std::vector<std::int32_t> first, second;
  bool follows = false;
};

/// Takes tokens off the end of the longer one until both fit in `budget`.
void truncate(SentencesOfPair& pair, std::int64_t budget) {
  while (std::ssize(pair.first) + std::ssize(pair.second) > budget)
    (pair.first.size() > pair.second.size() ? pair.first : pair.second).pop_back();
}

class MaskedVerses final : public Dataset {
 public:
  MaskedVerses(Verses verses, std::int64_t time) : verses_(std::move(verses)), time_(time) {
    for (const Split split : {Split::train, Split::test})
      splits_[static_cast<std::size_t>(split)] = split_verses(split, std::ssize(verses_.all));
  }

  [[nodiscard]] std::int64_t size(Split split) const override { return std::ssize(of(split).first); }
  [[nodiscard]] Shape example_shape() const override { return {time_}; }
  [[nodiscard]] std::int64_t class_count() const override { return verses_.token_count; }
  [[nodiscard]] TextLabels text_labels() const override { return TextLabels::masked_words; }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    for (const std::int64_t index : indices) {
      check_example(split, index, size(split));
      const SentencesOfPair pair = pair_of(split, index);
      const auto begin = static_cast<std::int64_t>(batch.tokens.size());
      add_tokens(pair, batch);
      mask_words(begin, pair_stream_of(split, index, mask_stream), batch);
    }
    return batch;
  }

 private:
  [[nodiscard]] const SplitVerses& of(Split split) const { return splits_[static_cast<std::size_t>(split)]; }

  [[nodiscard]] SentencesOfPair pair_of(Split split, std::int64_t index) const {
    const SplitVerses& verses = of(split);
    const RandomStream stream = pair_stream_of(split, index, pair_stream);
    const std::size_t first = verses.first[static_cast<std::size_t>(index)];
    const bool follows = stream.bits(0) % 2 == 0;
    std::size_t second = stream.bits(1) % (verses.numbers.size() - 2);
    if (second >= first) second += 2;  // any but the first and the one behind it
    if (follows) second = first + 1;
    SentencesOfPair pair{tokens(verses.numbers[first]), tokens(verses.numbers[second]), follows};
    truncate(pair, time_ - 3);
    return pair;
  }
  [[nodiscard]] const std::vector<std::int32_t>& tokens(std::int64_t verse) const {
    return verses_.all[static_cast<std::size_t>(verse)].tokens;
  }

  void add_tokens(const SentencesOfPair& pair, Batch& batch) const {
    const std::size_t end = batch.tokens.size() + static_cast<std::size_t>(time_);
    batch.tokens.push_back(BertTokens::start);
    batch.tokens.insert(batch.tokens.end(), pair.first.begin(), pair.first.end());
    batch.tokens.push_back(BertTokens::separator);
    batch.segments.resize(batch.tokens.size(), 0);
    batch.tokens.insert(batch.tokens.end(), pair.second.begin(), pair.second.end());
    batch.tokens.push_back(BertTokens::separator);
    batch.segments.resize(batch.tokens.size(), 1);
    batch.tokens.resize(end, BertTokens::padding);
    batch.segments.resize(end, 0);
    batch.lengths.push_back(static_cast<std::int32_t>(pair.first.size() + pair.second.size() + 3));
    batch.follows.push_back(pair.follows ? 1 : 0);
  }

  /// Hides words of the last example, whose tokens begin at `begin`.
  void mask_words(std::int64_t begin, const RandomStream& stream, Batch& batch) const {
    for (const std::int64_t place : places_to_mask(begin, stream, batch)) {
      std::int32_t& token = batch.tokens[static_cast<std::size_t>(place)];
      batch.masked.push_back(static_cast<std::int32_t>(place));
      batch.labels.push_back(token);
      token = hidden(token, stream.block(static_cast<std::uint64_t>(time_ + place - begin)));
    }
  }
  /// In ascending order: the 15 %, at least one, with the smallest random bits of all that are no [CLS], no
  /// [SEP] and no padding.
  [[nodiscard]] std::vector<std::int64_t> places_to_mask(std::int64_t begin, const RandomStream& stream,
                                                         const Batch& batch) const {
    std::vector<std::int64_t> places;
    for (std::int64_t place = begin; place < begin + time_; ++place) {
      const std::int32_t token = batch.tokens[static_cast<std::size_t>(place)];
      if (token == BertTokens::unknown || token >= BertTokens::first_word) places.push_back(place);
    }
    const std::int64_t count = std::max<std::int64_t>(1, (masked_percent * std::ssize(places) + 50) / 100);
    const auto bits = [&](std::int64_t place) {
      return stream.block(static_cast<std::uint64_t>(place - begin));
    };
    std::ranges::sort(places, {}, bits);
    places.resize(static_cast<std::size_t>(count));
    std::ranges::sort(places);
    return places;
  }
  [[nodiscard]] std::int32_t hidden(std::int32_t token, const RandomBlock& bits) const {
    if (bits[0] % 10 < 8) return BertTokens::mask;
    if (bits[0] % 10 == 8) return token;
    const auto words = static_cast<std::uint32_t>(verses_.token_count - BertTokens::first_word);
    return BertTokens::first_word + static_cast<std::int32_t>(bits[1] % words);
  }

  Verses verses_;
  std::int64_t time_;
  std::array<SplitVerses, 2> splits_;
};

std::unique_ptr<Dataset> open_masked_verses(const DatasetSpec& spec) {
  check_sequence_length(spec.whole(sequence_length_option), 5);
  return std::make_unique<MaskedVerses>(read_verses("masked_verses", spec),
                                        spec.whole(sequence_length_option));
}

}  // namespace

constexpr DatasetKind masked_verses_kind{.data = DataKind::text,
                                         .open = open_masked_verses,
                                         .options = {vocabulary_option, sequence_length_option}};

}  // namespace halfscope
