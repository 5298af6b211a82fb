// Sentence pairs: their tokens, their order, what a batch of them holds, and what is refused.
#include "sim/data/sentence_pairs.hpp"

#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::sentence_pairs_test {
namespace {

using Tokens = std::vector<std::int32_t>;

std::vector<SentencePair> three_pairs() {
  return {{{"the", "cat", "sleeps"}, {"le", "chat", "dort"}}, {{"cat"}, {"le", "chat"}}, {{"no"}, {"non"}}};
}

std::unique_ptr<Dataset> small(std::int64_t vocabulary, std::vector<SentencePair> test) {
  return make_sentence_pairs({three_pairs(), std::move(test), "small"}, vocabulary);
}

TEST_CASE("a batch of sentences is padded, and its labels are not", "[translation]") {
  const auto data = small(100, {{{"the", "dog"}, {"le", "chien"}}});
  REQUIRE(data->size(Split::train) == 3);
  CHECK(data->size(Split::test) == 1);
  CHECK(data->batch_order() == BatchOrder::neighbours);
  CHECK(data->example_shape() == Shape{3, 4});
  // English: cat comes up twice, then no, sleeps, the in byte order. French: chat and le twice, then dort,
  // non.
  CHECK(data->token_count() == special_tokens + 4);
  CHECK(data->class_count() == special_tokens + 4);
  const Batch train = data->batch(Split::train, std::vector<std::int64_t>{0, 1, 2});
  CHECK(train.lengths == Tokens{1, 1, 3});
  CHECK(train.tokens == Tokens{5, 0, 0, 4, 0, 0, 7, 4, 6});
  CHECK(train.label_counts == Tokens{2, 3, 4});
  CHECK(train.labels == Tokens{7, 2, 5, 4, 2, 5, 4, 6, 2});
  CHECK(train.decoder_tokens == Tokens{1, 7, 0, 0, 1, 5, 4, 0, 1, 5, 4, 6});
  const Batch alone = data->batch(Split::train, std::vector<std::int64_t>{1});
  CHECK(alone.tokens == Tokens{4});
  CHECK(alone.decoder_tokens == Tokens{1, 5, 4});
  // No training sentence has dog or chien.
  const Batch test = data->batch(Split::test, std::vector<std::int64_t>{0});
  CHECK(test.tokens == Tokens{7, unknown_token});
  CHECK(test.labels == Tokens{5, unknown_token, end_token});
  check_says(
      message_of<InvalidArgument>([&] { (void)data->batch(Split::test, std::vector<std::int64_t>{1}); }),
      {"test sentence 1", "0 to 0"});
  check_says(
      message_of<InvalidArgument>([&] { (void)data->batch(Split::train, std::vector<std::int64_t>{-1}); }),
      {"train sentence -1", "0 to 2"});
}

TEST_CASE("rare words have no token of their own where the vocabulary is small", "[translation]") {
  const auto data = small(6, {{{"cat"}, {"chat"}}});
  CHECK(data->token_count() == 6);
  CHECK(data->class_count() == 6);
  const Batch longest = data->batch(Split::train, std::vector<std::int64_t>{2});
  CHECK(longest.tokens == Tokens{unknown_token, 4, unknown_token});
  CHECK(longest.labels == Tokens{5, 4, unknown_token, end_token});
  CHECK(small(5, {{{"cat"}, {"chat"}}})->token_count() == 5);
  check_says(message_of<InvalidArgument>([] {
               (void)small(4, {{{"cat"}, {"chat"}}});
             }),
             {"vocabulary = 4", "give 5 or more"});
}

TEST_CASE("test pairs that repeat a training sentence are counted", "[translation]") {
  const auto repeats = [](std::vector<SentencePair> test) { return small(100, std::move(test))->summary(); };
  check_says(repeats({{{"cat", "no"}, {"chat"}}}), {"small: 3 + 1 sentence pairs", "which 0 test pairs"});
  check_says(repeats({{{"cat"}, {"chat"}}, {{"a"}, {"non"}}, {{"no"}, {"non"}}, {{"b"}, {"c"}}}),
             {"3 + 4", "which 3 test pairs"});
  CHECK(repeats({{{"a"}, {"b"}}}) != repeats({{{"a"}, {"c"}}}));  // by their hashes
  CHECK(repeats({{{"a"}, {"b"}}}) == repeats({{{"a"}, {"b"}}}));
}

TEST_CASE("empty splits are refused", "[translation]") {
  check_says(message_of<InvalidArgument>([] { (void)small(100, {}); }),
             {"small", "3 sentence pairs", "0 to test"});
  check_says(message_of<InvalidArgument>([] {
               (void)make_sentence_pairs({{}, three_pairs(), "none"}, 100);
             }),
             {"none: 0 sentence pairs", "3 to test"});
}

TEST_CASE("a split at random has every pair once", "[translation]") {
  std::vector<SentencePair> all;
  for (int i = 0; i < 50; ++i) all.push_back({{std::to_string(i)}, {}});
  const SentencePairs pairs = split_at_random(all, 20);
  REQUIRE(pairs.test.size() == 20);
  REQUIRE(pairs.train.size() == 30);
  std::vector<std::string> in_order, words;
  for (const SentencePair& pair : all) in_order.push_back(pair.source[0]);
  for (const auto* split : {&pairs.test, &pairs.train})
    for (const SentencePair& pair : *split) words.push_back(pair.source[0]);
  CHECK(words != in_order);
  std::ranges::sort(words);
  std::ranges::sort(in_order);
  CHECK(words == in_order);
  CHECK(split_at_random({}, 1).train.empty());
}

}  // namespace
}  // namespace halfscope::sentence_pairs_test
