// Numbers the words of a text once, and cuts windows out of them.
#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>

#include "sim/data/king_james.hpp"
#include "sim/data/tokenizer.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t test_percent = 5;

class Text final : public Dataset {
 public:
  Text(Vocabulary vocabulary, std::int64_t window)
      : vocabulary_(std::move(vocabulary)), window_(window), test_start_(train_tokens()) {}

  [[nodiscard]] std::int64_t size(Split split) const override {
    if (split == Split::train) return std::max<std::int64_t>(0, test_start_ - window_);
    return std::max<std::int64_t>(0, text_tokens() - test_start_ - 1) / window_;
  }
  [[nodiscard]] Shape example_shape() const override { return {window_}; }
  [[nodiscard]] std::int64_t class_count() const override { return vocabulary_.size(); }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    for (const std::int64_t index : indices) {
      if (index < 0 || index >= size(split)) {
        throw InvalidArgument(
            fmt::format("{} example {}: the text has 0 to {}", name_of(split), index, size(split) - 1));
      }
      const std::int64_t first = split == Split::train ? index : test_start_ + index * window_;
      const auto begin = vocabulary_.tokens.begin() + first;
      batch.tokens.insert(batch.tokens.end(), begin, begin + window_);
      batch.labels.insert(batch.labels.end(), begin + 1, begin + window_ + 1);
    }
    return batch;
  }

 private:
  [[nodiscard]] std::int64_t text_tokens() const {
    return static_cast<std::int64_t>(vocabulary_.tokens.size());
  }
  [[nodiscard]] std::int64_t train_tokens() const {
    return text_tokens() - text_tokens() * test_percent / 100;
  }

  Vocabulary vocabulary_;
  std::int64_t window_;
  std::int64_t test_start_;
};

std::unique_ptr<Dataset> open_kjv_text(const DatasetSpec& spec) {
  if (spec.whole(sequence_length_option) < 1) {
    throw InvalidArgument(
        fmt::format("sequence_length = {}: give 1 or more", spec.whole(sequence_length_option)));
  }
  const auto [text_bytes, source] = read_text("kjv_text", spec.data);
  const std::vector<std::string> words = tokenise(text_bytes, source);
  if (std::none_of(words.begin(), words.end(), is_word)) {
    throw InvalidArgument(source + ": there is no word in it; give a UTF-8 text");
  }
  auto text = std::make_unique<Text>(number_words(words, spec.whole(vocabulary_option)),
                                     spec.whole(sequence_length_option));
  if (text->size(Split::train) < 1 || text->size(Split::test) < 1) {
    const std::int64_t least = (spec.whole(sequence_length_option) + 1) * 100 / test_percent;
    throw InvalidArgument(
        fmt::format("{}: {} tokens are too few for windows of {} in both splits; give a text of "
                    "{} or a smaller sequence_length",
                    source, words.size(), spec.whole(sequence_length_option), least));
  }
  return text;
}

}  // namespace

constexpr DatasetKind kjv_text_kind{
    .data = DataKind::text, .open = open_kjv_text, .options = {vocabulary_option, sequence_length_option}};

}  // namespace halfscope
