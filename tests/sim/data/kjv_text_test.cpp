// Texts as data sets: windows and splits, the King James Bible's counts, and texts that cannot serve.
#include "sim/data/datasets.hpp"

#include <cstdlib>
#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::kjv_text_test {
namespace {

/// "a b c ... a b c": words in alphabetical order, all in one line but for the last end of line.
std::string letters(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += std::string(1, static_cast<char>('a' + i % 26)) + " ";
  return text;
}

TEST_CASE("windows start at every training token and lie side by side in the test split", "[text]") {
  const TemporaryFolder folder;
  // 199 words and the line's end: 190 tokens to train on, 10 to test.
  const auto text = kjv_text_kind.open(
      {.data = folder.put("text", letters(199)), .options = {{"vocabulary", 50}, {"sequence_length", 4}}});
  CHECK(text->size(Split::train) == 186);
  CHECK(text->size(Split::test) == 2);
  CHECK(text->example_shape() == Shape{4});
  CHECK(text->class_count() == 28);  // 26 letters, the line's end, and the rest, which is none
  const Batch train = text->batch(Split::train, std::vector<std::int64_t>{0, 1, 185});
  REQUIRE(train.tokens.size() == 12);
  CHECK(train.labels[0] == train.tokens[1]);
  CHECK(train.tokens[4] == train.tokens[1]);
  CHECK(train.tokens[8] == text->batch(Split::train, std::vector<std::int64_t>{185 - 26}).tokens[0]);
  const Batch test = text->batch(Split::test, std::vector<std::int64_t>{0, 1});
  CHECK(test.labels[3] == test.tokens[4]);
  // Letter 190 starts the test split, letter 185 + 4 ends training's last label.
  CHECK(test.tokens[0] == text->batch(Split::train, std::vector<std::int64_t>{190 - 26}).tokens[0]);
  CHECK_THROWS_AS(text->batch(Split::test, std::vector<std::int64_t>{2}), InvalidArgument);
  CHECK_THROWS_AS(text->batch(Split::train, std::vector<std::int64_t>{-1}), InvalidArgument);
}

TEST_CASE("the King James Bible has 944,084 tokens of 12,831 types", "[text][known]") {
  if (std::system("command -v bible >/dev/null") != 0) {
    WARN("bible-kjv is not installed");
    return;
  }
  const auto all = open_dataset("kjv_text", {.options = {{"vocabulary", 100'000}, {"sequence_length", 1}}});
  CHECK(all->class_count() == 12'832);
  // Training windows of one token need the token after them; the test split's first token has one too.
  const std::int64_t test = 944'084 * 5 / 100;
  CHECK(all->size(Split::train) == 944'084 - test - 1);
  CHECK(all->size(Split::test) == test - 1);
  const auto usual = open_dataset("kjv_text", {});
  CHECK(usual->class_count() == 4096);
  CHECK(usual->size(Split::test) == (test - 1) / 32);
}

TEST_CASE("a text that cannot serve is refused in one line", "[text]") {
  const TemporaryFolder folder;
  const auto refusal = [](const DatasetSpec& spec) {
    return message_of<InvalidArgument>([&] { (void)kjv_text_kind.open(spec); });
  };
  check_says(refusal({.data = folder / "missing.txt"}), {"missing.txt"});
  check_says(refusal({.data = folder.put("empty.txt", "")}), {"empty.txt", "no word"});
  check_says(refusal({.data = folder.put("marks.txt", "... 12 !\n")}), {"marks.txt", "no word"});
  check_says(refusal({.data = folder.put("latin.txt", "caf\xE9\n")}),
             {"latin.txt", "line 1", "0xe9", "UTF-8"});
  check_says(refusal({.data = folder.put("binary", std::string("\x7F"
                                                               "ELF\0\0",
                                                               6))}),
             {"binary", "NUL"});
  const auto small = folder.put("small.txt", letters(60));
  check_says(refusal({.data = small, .options = {{"sequence_length", 32}}}),
             {"small.txt", "61 tokens", "32", "660"});
  check_says(refusal({.data = small, .options = {{"vocabulary", 0}, {"sequence_length", 1}}}),
             {"vocabulary = 0", "2 or more"});
  check_says(refusal({.data = small, .options = {{"vocabulary", 1}, {"sequence_length", 1}}}),
             {"vocabulary = 1", "2 or more"});
  check_says(refusal({.data = small, .options = {{"sequence_length", 0}}}),
             {"sequence_length = 0", "1 or more"});
  const EnvironmentVariable no_programs("PATH", "/nonexistent");
  check_says(refusal({}), {"bible-kjv-text", "--data FILE"});
}

}  // namespace
}  // namespace halfscope::kjv_text_test
