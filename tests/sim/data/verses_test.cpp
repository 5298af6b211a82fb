// Verses as examples: splits, classes, pairs and masked words, and texts that cannot serve.
#include "sim/data/verses.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "sim/data/datasets.hpp"
#include "sim/data/king_james.hpp"
#include "sim/models/models.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::verses_test {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers all_of(const Dataset& dataset, Split split) {
  Numbers numbers(static_cast<std::size_t>(dataset.size(split)));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Line i is `words` times the i-th two letters, behind a label.
std::string lines(int count, int words, const std::string& label = "Ge1:") {
  std::string text;
  for (int line = 0; line < count; ++line) {
    text += label + std::to_string(line + 1) + " ";
    for (int word = 0; word < words; ++word) {
      text += static_cast<char>('a' + line / 26);
      text += static_cast<char>('a' + line % 26);
      text += ' ';
    }
    text += '\n';
  }
  return text;
}

TEST_CASE("runs of four verses at equal distances are held out", "[text]") {
  CHECK(verses_of(Split::test, 12) == Numbers{4, 5, 6, 7});
  CHECK(verses_of(Split::train, 12) == Numbers{0, 1, 2, 3, 8, 9, 10, 11});
  // 80 verses are 20 runs, of which 2 are held out: the 6th and the 16th.
  CHECK(verses_of(Split::test, 80) == Numbers{20, 21, 22, 23, 60, 61, 62, 63});
  CHECK(verses_of(Split::test, 31'102).size() == 1000);
  CHECK(verses_of(Split::train, 31'102).size() == 30'102);
}

TEST_CASE("a verse is [CLS], its words, [SEP] and padding, labelled by its book", "[text]") {
  const TemporaryFolder folder;
  std::string text = lines(11, 1);
  text += "1Jn2:3 ab ab cd ab zz\n\nRev1:1 ab\n";
  const auto verses = verse_genre_kind.open(
      {.data = folder.put("text", text), .options = {{"vocabulary", 7}, {"sequence_length", 6}}});
  CHECK(verses->class_count() == 6);
  CHECK(verses->token_count() == 7);
  CHECK(verses->example_shape() == Shape{6});
  // Thirteen verses are four runs, of which the third is held out.
  REQUIRE(verses->size(Split::train) == 9);
  const Batch train = verses->batch(Split::train, Numbers{0, 8});
  // "ab" is the most frequent word, "aa" the first in byte order of the equally frequent rest.
  CHECK(train.tokens == std::vector<std::int32_t>{2, 6, 3, 0, 0, 0, 2, 5, 3, 0, 0, 0});
  CHECK(train.lengths == std::vector<std::int32_t>{3, 3});
  CHECK(train.labels == std::vector<std::int32_t>{0, 5});
  const Batch test = verses->batch(Split::test, Numbers{3});
  CHECK(test.tokens == std::vector<std::int32_t>{2, 5, 5, 1, 5, 3});
  CHECK(test.lengths == std::vector<std::int32_t>{6});
  CHECK(test.labels == std::vector<std::int32_t>{5});
  CHECK_THROWS_AS(verses->batch(Split::train, Numbers{9}), InvalidArgument);
  CHECK_THROWS_AS(verses->batch(Split::test, Numbers{-1}), InvalidArgument);
}

TEST_CASE("books have their classes", "[text]") {
  const std::map<std::string, Genre> genres{
      {"Ge1:1", Genre::law},         {"Deu34:12", Genre::law},    {"Josh1:1", Genre::history},
      {"2Chr36:23", Genre::history}, {"Job1:1", Genre::poetry},   {"SSol8:14", Genre::poetry},
      {"Isa1:1", Genre::prophets},   {"Mal4:6", Genre::prophets}, {"Mat1:1", Genre::gospels},
      {"Acts28:31", Genre::gospels}, {"Rom1:1", Genre::epistles}, {"1Jn1:1", Genre::epistles},
      {"Rev22:21", Genre::epistles}};
  for (const auto& [label, genre] : genres) {
    INFO(label);
    CHECK(genre_of(label) == genre);
  }
  CHECK_FALSE(genre_of("").has_value());
  CHECK_FALSE(genre_of("Tob1:1").has_value());
}

/// An example taken apart again: tokens with the hidden words in their places.
struct Shown {
  std::vector<std::int32_t> first, second;
  std::size_t hidden = 0;
};
Shown shown(const Batch& batch, std::size_t time) {
  std::vector<std::int32_t> tokens = batch.tokens;
  for (std::size_t i = 0; i < batch.masked.size(); ++i)
    tokens[static_cast<std::size_t>(batch.masked[i])] = batch.labels[i];
  REQUIRE(tokens.size() == time);
  REQUIRE(tokens[0] == BertTokens::start);
  const auto middle = std::ranges::find(tokens, +BertTokens::separator);
  const auto end = std::find(middle + 1, tokens.end(), +BertTokens::separator);
  REQUIRE(end != tokens.end());
  CHECK(end - tokens.begin() + 1 == batch.lengths[0]);
  CHECK(std::all_of(end + 1, tokens.end(), [](std::int32_t token) { return token == 0; }));
  for (std::size_t i = 0; i < time; ++i) {
    const auto place = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    CHECK(batch.segments[i] == (place > middle && place <= end ? 1 : 0));
  }
  return {{tokens.begin() + 1, middle}, {middle + 1, end}, batch.masked.size()};
}

TEST_CASE("a pair's second verse follows the first in half of the pairs, and is of the same split",
          "[text]") {
  const TemporaryFolder folder;
  constexpr std::int64_t count = 600;
  const auto pairs = masked_verses_kind.open({.data = folder.put("text", lines(count, 5)),
                                              .options = {{"vocabulary", 1000}, {"sequence_length", 13}}});
  const auto known =
      read_verses("masked_verses", {.data = folder / "text", .options = {{"vocabulary", 1000}}});
  REQUIRE(known.token_count == count + BertTokens::first_word);
  CHECK(pairs->class_count() == known.token_count);
  CHECK(pairs->token_count() == known.token_count);
  const auto verse_of = [&](std::int32_t token) {
    const auto found =
        std::ranges::find_if(known.all, [&](const Verse& verse) { return verse.tokens.front() == token; });
    return found - known.all.begin();
  };
  for (const Split split : {Split::train, Split::test}) {
    const Numbers own = verses_of(split, count);
    const std::set<std::int64_t> in_split(own.begin(), own.end());
    std::int64_t follows = 0;
    for (const std::int64_t index : all_of(*pairs, split)) {
      const Batch batch = pairs->batch(split, Numbers{index});
      const Shown pair = shown(batch, 13);
      CHECK(pair.first.size() == 5);
      CHECK(pair.second.size() == 5);
      const auto first = verse_of(pair.first.front()), second = verse_of(pair.second.front());
      CHECK(in_split.contains(first));
      CHECK(in_split.contains(second));
      CHECK((second == first + 1) == (batch.follows[0] == 1));
      CHECK(second != first);
      CHECK(pair.hidden == 2);  // 15 % of 10, rounded to the nearest
      follows += batch.follows[0];
    }
    // Four standard deviations of a fair coin.
    const double size = static_cast<double>(pairs->size(split));
    CHECK(std::abs(static_cast<double>(follows) - size / 2) < 2 * std::sqrt(size));
  }
}

TEST_CASE("of the words to predict 80 % are hidden and 10 % another word", "[text]") {
  const TemporaryFolder folder;
  const auto pairs = masked_verses_kind.open({.data = folder.put("text", lines(600, 5)),
                                              .options = {{"vocabulary", 1000}, {"sequence_length", 13}}});
  const Numbers all = all_of(*pairs, Split::train);
  const Batch batch = pairs->batch(Split::train, all);
  double masked = 0, same = 0, other = 0;
  for (std::size_t i = 0; i < batch.masked.size(); ++i) {
    const std::int32_t token = batch.tokens[static_cast<std::size_t>(batch.masked[i])];
    (token == BertTokens::mask ? masked : token == batch.labels[i] ? same : other) += 1;
    if (token != BertTokens::mask) CHECK(token >= BertTokens::first_word);
  }
  const double total = static_cast<double>(batch.masked.size());
  CHECK(total == 2.0 * static_cast<double>(all.size()));
  CHECK(std::abs(masked / total - 0.8) < 0.05);  // 4 standard deviations are 0.049
  CHECK(std::abs(same / total - 0.1) < 0.04);
  CHECK(std::abs(other / total - 0.1) < 0.04);
  // A function of the number alone.
  const Batch backwards = pairs->batch(Split::train, Numbers{all.rbegin(), all.rend()});
  CHECK(std::equal(backwards.tokens.end() - 13, backwards.tokens.end(), batch.tokens.begin()));
  CHECK(std::equal(backwards.labels.end() - 2, backwards.labels.end(), batch.labels.begin()));
}

TEST_CASE("long pairs lose the end of the longer verse", "[text]") {
  const TemporaryFolder folder;
  const auto pairs = masked_verses_kind.open(
      {.data = folder.put("text", lines(40, 9)), .options = {{"vocabulary", 100}, {"sequence_length", 12}}});
  for (const std::int64_t index : all_of(*pairs, Split::train)) {
    const Shown pair = shown(pairs->batch(Split::train, Numbers{index}), 12);
    CHECK(pair.first.size() == 5);
    CHECK(pair.second.size() == 4);
    CHECK(pair.hidden == 1);
  }
}

TEST_CASE("the King James Bible has 30,102 verses to train on and one vocabulary for both tasks",
          "[text][known]") {
  if (std::system("command -v bible >/dev/null") != 0) {
    WARN("bible-kjv is not installed");
    return;
  }
  const auto verses = open_dataset("verse_genre", {});
  CHECK(verses->size(Split::train) == 30'102);
  CHECK(verses->size(Split::test) == 1000);
  std::array<int, 6> counts{};
  for (const Split split : {Split::train, Split::test})
    for (const std::int32_t genre : verses->batch(split, all_of(*verses, split)).labels)
      ++counts[static_cast<std::size_t>(genre)];
  CHECK(counts == std::array<int, 6>{5852, 7018, 4785, 5490, 4786, 3171});
  const auto pairs = open_dataset("masked_verses", {});
  CHECK(pairs->size(Split::test) == 750);
  CHECK(pairs->token_count() == 4096);
  CHECK(verses->token_count() == 4096);
}

TEST_CASE("a text without verses is refused in one line", "[text]") {
  const TemporaryFolder folder;
  const auto refusal = [](auto* open, const DatasetSpec& spec) {
    return message_of<InvalidArgument>([&] { (void)open(spec); });
  };
  const auto plain = folder.put("plain.txt", lines(20, 3, "chapter "));
  check_says(refusal(verse_genre_kind.open, {.data = plain}),
             {"verse_genre", "plain.txt", "line 1", "Ge1:1", "masked_verses"});
  CHECK(masked_verses_kind.open({.data = plain})->size(Split::train) > 0);
  const auto unknown = folder.put("unknown.txt", lines(14, 3) + "Tob1:1 aa bb\n");
  check_says(refusal(verse_genre_kind.open, {.data = unknown}), {"unknown.txt", "line 15"});
  const auto few = folder.put("few.txt", "... !\n" + lines(11, 3));
  for (auto* const open : {verse_genre_kind.open, masked_verses_kind.open}) {
    check_says(refusal(open, {.data = folder / "missing.txt"}), {"data set", "missing.txt"});
    check_says(refusal(open, {.data = few}), {"few.txt", "11 lines", "12"});
    check_says(refusal(open, {.data = plain, .options = {{"vocabulary", 5}}}),
               {"vocabulary = 5", "6 or more"});
    check_says(refusal(open, {.data = plain, .options = {{"sequence_length", 2}}}), {"sequence_length = 2"});
  }
  const EnvironmentVariable no_programs("PATH", "/nonexistent");
  check_says(refusal(masked_verses_kind.open, {}), {"masked_verses", "bible-kjv-text", "--data FILE"});
}

TEST_CASE("models of the next word refuse verses", "[text]") {
  for (const TextLabels labels : {TextLabels::masked_words, TextLabels::text_class}) {
    const ModelSpec spec{.example_shape = {8}, .class_count = 6, .token_count = 20, .text_labels = labels};
    check_says(message_of<InvalidArgument>([&] { (void)gru_lm_kind.make(spec); }),
               {"model gru_lm", "kjv_text"});
    check_says(message_of<InvalidArgument>([&] { (void)big_lstm_kind.make(spec); }),
               {"model big_lstm", "kjv_text"});
  }
}

}  // namespace
}  // namespace halfscope::verses_test
