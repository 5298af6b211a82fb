// Verses of the King James Bible with the class of their book.
#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>

#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"
#include "sim/data/king_james.hpp"
#include "sim/data/verses.hpp"

namespace halfscope {
namespace {

Genre checked_genre(const Verses& verses, const Verse& verse) {
  if (const std::optional<Genre> genre = genre_of(verse.label)) return *genre;
  throw InvalidArgument(fmt::format(
      "data set verse_genre: {}: line {} begins with no label of a verse of the King James Bible; give lines "
      "as 'bible -f ge1:1-re22:21' prints them, 'Ge1:1 In the beginning', or choose masked_verses, which "
      "reads any text of lines",
      verses.source, verse.line));
}

class VerseGenre final : public Dataset {
 public:
  VerseGenre(Verses verses, std::int64_t time) : verses_(std::move(verses)), time_(time) {
    for (const Verse& verse : verses_.all)
      genres_.push_back(static_cast<std::int32_t>(checked_genre(verses_, verse)));
    for (const Split split : {Split::train, Split::test})
      numbers_[static_cast<std::size_t>(split)] = verses_of(split, std::ssize(verses_.all));
  }

  [[nodiscard]] std::int64_t size(Split split) const override { return std::ssize(numbers(split)); }
  [[nodiscard]] Shape example_shape() const override { return {time_}; }
  [[nodiscard]] std::int64_t class_count() const override { return std::ssize(enum_names<Genre>); }
  [[nodiscard]] std::int64_t token_count() const override { return verses_.token_count; }
  [[nodiscard]] TextLabels text_labels() const override { return TextLabels::text_class; }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    for (const std::int64_t index : indices) {
      check_example(split, index, size(split));
      const auto verse = static_cast<std::size_t>(numbers(split)[static_cast<std::size_t>(index)]);
      add_tokens(verses_.all[verse].tokens, batch);
      batch.labels.push_back(genres_[verse]);
    }
    return batch;
  }

 private:
  [[nodiscard]] const std::vector<std::int64_t>& numbers(Split split) const {
    return numbers_[static_cast<std::size_t>(split)];
  }
  void add_tokens(const std::vector<std::int32_t>& words, Batch& batch) const {
    const std::int64_t used = std::min<std::int64_t>(std::ssize(words), time_ - 2);
    const std::size_t end = batch.tokens.size() + static_cast<std::size_t>(time_);
    batch.tokens.push_back(BertTokens::start);
    batch.tokens.insert(batch.tokens.end(), words.begin(), words.begin() + used);
    batch.tokens.push_back(BertTokens::separator);
    batch.tokens.resize(end, BertTokens::padding);
    batch.lengths.push_back(static_cast<std::int32_t>(used + 2));
  }

  Verses verses_;
  std::int64_t time_;
  std::vector<std::int32_t> genres_;  ///< by verse
  std::array<std::vector<std::int64_t>, 2> numbers_;
};

std::unique_ptr<Dataset> open_verse_genre(const DatasetSpec& spec) {
  check_sequence_length(spec.whole(sequence_length_option), 3);
  return std::make_unique<VerseGenre>(read_verses("verse_genre", spec), spec.whole(sequence_length_option));
}

}  // namespace

constexpr DatasetKind verse_genre_kind{
    .data = DataKind::text, .open = open_verse_genre, .options = {vocabulary_option, sequence_length_option}};

}  // namespace halfscope
