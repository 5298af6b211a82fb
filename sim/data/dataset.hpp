// A data set: examples with what is to be predicted, in a train and a test split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <halfscope/device/array.hpp>

#include "sim/options/entry_options.hpp"

namespace halfscope {

/// Where an object is in its image, in pixels from the top left corner, and what it is.
struct Box {
  std::int32_t example = 0;  ///< its image's place in the batch
  std::int32_t label = 0;
  float top = 0, left = 0, bottom = 0, right = 0;
};

/// One minibatch, or any selection of examples; each data set fills what it has.
struct Batch {
  Array inputs{};  // images: (batch, height, width, channel); speech: (batch, time, feature)
  std::vector<std::int32_t> tokens{};  // text: (batch, time); of a translation the source
  std::vector<std::int32_t> labels{};  // one per prediction: (batch), (batch, time), (batch, height, width)
  std::vector<Box> boxes{};            // detection: those of the first image first
  /// Beside boxes, (batch, height, width): 1 + the class of the object that a pixel shows, 0 for none.
  std::vector<std::int32_t> masks{};
  /// Speech and sentences, per example: its frames or tokens, behind which there are zeros, and its labels,
  /// which lie in `labels` one example behind the other.
  std::vector<std::int32_t> lengths{}, label_counts{};
  /// Translation, (batch, largest label count): the start of a sentence, then each label but the last; behind
  /// them zeros.
  std::vector<std::int32_t> decoder_tokens{};
  /// Pairs of sentences: of each token, (batch, time), 0 for the first sentence and the padding, 1 for the
  /// second; the places in `tokens` of the words to predict, which are the labels; and per example 1 where
  /// the second sentence follows the first in the text, else 0.
  std::vector<std::int32_t> segments{}, masked{}, follows{};
};

/// Options of all data sets; each reads its own.
struct DatasetSpec {
  std::filesystem::path data{};  ///< file or folder; empty: where its package puts it
  OptionValues options{};        ///< the data set's; an option that is left out has its default

  [[nodiscard]] std::int64_t whole(const EntryOption& option) const {
    return static_cast<std::int64_t>(value_of(option, options));
  }

  auto operator<=>(const DatasetSpec&) const = default;  // NOLINT(modernize-use-nullptr): no pointer here
};

enum class Split : std::uint8_t { train, test };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Split>{"train", "test"};

/// The order in which a minibatch takes its examples.
enum class BatchOrder : std::uint8_t {
  shuffled,    ///< nothing: each epoch cuts a fresh random order
  neighbours,  ///< they stand side by side in the data set, where examples are alike in length
};

/// The tokens that a text's labels name.
enum class TextLabels : std::uint8_t {
  next_words,    ///< the token behind each token; the words of a second language, where the text has one
  masked_words,  ///< words that the tokens hide
  text_class,    ///< a class of the whole text
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of examples, at least 1.
  [[nodiscard]] virtual std::int64_t size(Split split) const = 0;
  /// (height, width, channel) of an image, (time) of a text, (longest time, feature) of speech, (longest
  /// source, longest target) of a translation.
  [[nodiscard]] virtual Shape example_shape() const = 0;
  /// Labels are in [0, class_count).
  [[nodiscard]] virtual std::int64_t class_count() const = 0;
  /// Tokens, if it has any, are in [0, token_count()).
  [[nodiscard]] virtual std::int64_t token_count() const { return class_count(); }
  [[nodiscard]] virtual TextLabels text_labels() const { return TextLabels::next_words; }
  [[nodiscard]] virtual BatchOrder batch_order() const { return BatchOrder::shuffled; }
  /// The examples in words, if the settings do not tell; empty otherwise.
  [[nodiscard]] virtual std::string summary() const { return {}; }
  /// The examples at `indices` of `split`, in that order. Throws InvalidArgument for an index out of range.
  [[nodiscard]] virtual Batch batch(Split split, std::span<const std::int64_t> indices) const = 0;
};

/// Throws InvalidArgument, which calls it an `example`, unless `index` is one of the data set's.
void check_index(const Dataset& dataset, Split split, std::int64_t index, std::string_view example);

}  // namespace halfscope
