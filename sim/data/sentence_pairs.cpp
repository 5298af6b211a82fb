// Numbers, sorts and pads sentences.
#include "sim/data/sentence_pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <halfscope/core/error.hpp>
#include <halfscope/core/stderr_text.hpp>

#include "sim/data/sampler.hpp"
#include "sim/data/tokenizer.hpp"

namespace halfscope {
namespace {

using Sentence = std::vector<std::string>;
using Side = Sentence SentencePair::*;

std::string as_text(const Sentence& sentence) {
  return fmt::format("{}", fmt::join(sentence, " "));
}

/// Tokens of one language.
class Lexicon {
 public:
  Lexicon(const std::vector<SentencePair>& train, Side side, std::int64_t size) {
    Sentence words;
    for (const SentencePair& pair : train)
      words.insert(words.end(), (pair.*side).begin(), (pair.*side).end());
    for (std::string& word : number_words(words, size - special_tokens + 1).words) {
      const auto token = static_cast<std::int32_t>(this->size());
      tokens_.emplace(std::move(word), token);
    }
  }

  [[nodiscard]] std::int64_t size() const { return special_tokens + std::ssize(tokens_); }
  [[nodiscard]] std::vector<std::int32_t> tokens(const Sentence& sentence) const {
    std::vector<std::int32_t> result;
    for (const std::string& word : sentence) {
      const auto found = tokens_.find(word);
      result.push_back(found == tokens_.end() ? unknown_token : found->second);
    }
    return result;
  }

 private:
  std::unordered_map<std::string, std::int32_t> tokens_;
};

struct TokenPair {
  std::vector<std::int32_t> source, labels;  // the labels with the end of the sentence
};

std::pair<std::size_t, std::size_t> length_of(const TokenPair& pair) {
  return {pair.source.size(), pair.labels.size()};
}

/// Test sentences of a side that are training sentences too.
std::vector<bool> repeated(const SentencePairs& pairs, Side side) {
  std::unordered_set<std::string> trained;
  for (const SentencePair& pair : pairs.train) trained.insert(as_text(pair.*side));
  std::vector<bool> result;
  for (const SentencePair& pair : pairs.test) result.push_back(trained.contains(as_text(pair.*side)));
  return result;
}

std::int64_t repeated_count(const SentencePairs& pairs) {
  const std::vector<bool> sources = repeated(pairs, &SentencePair::source),
                          targets = repeated(pairs, &SentencePair::target);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) count += sources[i] || targets[i] ? 1 : 0;
  return count;
}

/// FNV-1a, 64 bits, of the sentences of both splits in their order.
std::uint64_t hash_of(const SentencePairs& pairs) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto* split : {&pairs.train, &pairs.test}) {
    for (const SentencePair& pair : *split) {
      for (const char c : as_text(pair.source) + '\t' + as_text(pair.target) + '\n')
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  }
  return hash;
}

std::string summary_of(const SentencePairs& pairs, std::int64_t repeats) {
  return fmt::format(
      "{}: {} + {} sentence pairs (hash {:016x}), of which {} test pairs repeat the source or the target of "
      "a "
      "training pair",
      pairs.origin, pairs.train.size(), pairs.test.size(), hash_of(pairs), repeats);
}

class Translation final : public Dataset {
 public:
  Translation(const SentencePairs& pairs, std::int64_t vocabulary, std::string summary)
      : sources_(pairs.train, &SentencePair::source, vocabulary),
        targets_(pairs.train, &SentencePair::target, vocabulary),
        splits_{numbered(pairs.train), numbered(pairs.test)},
        summary_(std::move(summary)) {
    for (const std::vector<TokenPair>& split : splits_) {
      for (const TokenPair& pair : split) {
        longest_[0] = std::max(longest_[0], std::ssize(pair.source));
        longest_[1] = std::max(longest_[1], std::ssize(pair.labels));
      }
    }
  }

  [[nodiscard]] std::int64_t size(Split split) const override { return std::ssize(of(split)); }
  [[nodiscard]] Shape example_shape() const override { return {longest_[0], longest_[1]}; }
  [[nodiscard]] std::int64_t class_count() const override { return targets_.size(); }
  [[nodiscard]] std::int64_t token_count() const override { return sources_.size(); }
  [[nodiscard]] BatchOrder batch_order() const override { return BatchOrder::neighbours; }
  [[nodiscard]] std::string summary() const override { return summary_; }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    std::vector<const TokenPair*> chosen;
    std::size_t source_time = 0, target_time = 0;
    for (const std::int64_t index : indices) {
      check_index(*this, split, index, "sentence");
      const TokenPair& pair = *chosen.emplace_back(&of(split)[static_cast<std::size_t>(index)]);
      source_time = std::max(source_time, pair.source.size());
      target_time = std::max(target_time, pair.labels.size());
    }
    Batch batch;
    for (const TokenPair* pair : chosen) {
      append_padded(batch.tokens, pair->source, source_time);
      batch.lengths.push_back(static_cast<std::int32_t>(pair->source.size()));
      std::vector<std::int32_t> known{start_token};
      known.insert(known.end(), pair->labels.begin(), pair->labels.end() - 1);
      append_padded(batch.decoder_tokens, known, target_time);
      batch.label_counts.push_back(static_cast<std::int32_t>(pair->labels.size()));
      batch.labels.insert(batch.labels.end(), pair->labels.begin(), pair->labels.end());
    }
    return batch;
  }

 private:
  static void append_padded(std::vector<std::int32_t>& to, const std::vector<std::int32_t>& tokens,
                            std::size_t time) {
    to.insert(to.end(), tokens.begin(), tokens.end());
    to.insert(to.end(), time - tokens.size(), padding_token);
  }

  [[nodiscard]] const std::vector<TokenPair>& of(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }

  [[nodiscard]] std::vector<TokenPair> numbered(const std::vector<SentencePair>& pairs) const {
    std::vector<TokenPair> result;
    for (const SentencePair& pair : pairs) {
      TokenPair& tokens =
          result.emplace_back(TokenPair{sources_.tokens(pair.source), targets_.tokens(pair.target)});
      tokens.labels.push_back(end_token);
    }
    std::ranges::stable_sort(result, {}, length_of);
    return result;
  }

  Lexicon sources_, targets_;
  std::array<std::vector<TokenPair>, 2> splits_;
  std::array<std::int64_t, 2> longest_{};  // source and labels
  std::string summary_;
};

}  // namespace

SentencePairs split_at_random(std::vector<SentencePair> all, std::int64_t tests) {
  SentencePairs pairs;
  if (all.empty()) return pairs;
  Sampler order(std::ssize(all), std::ssize(all), 0);
  for (const std::int64_t index : order.indices(0)) {
    auto& split = std::ssize(pairs.test) < tests ? pairs.test : pairs.train;
    split.push_back(std::move(all[static_cast<std::size_t>(index)]));
  }
  return pairs;
}

std::unique_ptr<Dataset> make_sentence_pairs(SentencePairs pairs, std::int64_t vocabulary) {
  if (vocabulary <= special_tokens) {
    throw InvalidArgument(fmt::format("vocabulary = {}: give {} or more, of which {} stand for no word",
                                      vocabulary, special_tokens + 1, special_tokens));
  }
  if (pairs.train.empty() || pairs.test.empty()) {
    throw InvalidArgument(
        fmt::format("{}: {} sentence pairs to train on and {} to test; give at least one each", pairs.origin,
                    pairs.train.size(), pairs.test.size()));
  }
  const std::int64_t repeats = repeated_count(pairs);
  if (repeats > 0) {
    print_stderr(
        fmt::format("note: {}: {} of {} test pairs repeat the source or the target of a training pair\n",
                    pairs.origin, repeats, pairs.test.size()));
  }
  return std::make_unique<Translation>(pairs, vocabulary, summary_of(pairs, repeats));
}

}  // namespace halfscope
