// Numbers in words, beside a table written by hand, and the data set made of them.
#include <fmt/ranges.h>

#include <set>

#include "sim/data/datasets.hpp"
#include "sim/data/number_names.hpp"
#include "sim/data/sentence_pairs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::numbers_to_words_test {
namespace {

std::string text(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

struct NumberInWords {
  std::int64_t number;
  std::string english, french;
};

const std::vector<NumberInWords> by_hand{
    {0, "zero", "zéro"},
    {1, "one", "un"},
    {10, "ten", "dix"},
    {13, "thirteen", "treize"},
    {16, "sixteen", "seize"},
    {17, "seventeen", "dix sept"},
    {20, "twenty", "vingt"},
    {21, "twenty one", "vingt et un"},
    {22, "twenty two", "vingt deux"},
    {31, "thirty one", "trente et un"},
    {47, "forty seven", "quarante sept"},
    {51, "fifty one", "cinquante et un"},
    {60, "sixty", "soixante"},
    {61, "sixty one", "soixante et un"},
    {70, "seventy", "soixante dix"},
    {71, "seventy one", "soixante et onze"},
    {72, "seventy two", "soixante douze"},
    {77, "seventy seven", "soixante dix sept"},
    {80, "eighty", "quatre vingts"},
    {81, "eighty one", "quatre vingt un"},
    {90, "ninety", "quatre vingt dix"},
    {91, "ninety one", "quatre vingt onze"},
    {99, "ninety nine", "quatre vingt dix neuf"},
    {100, "one hundred", "cent"},
    {101, "one hundred one", "cent un"},
    {180, "one hundred eighty", "cent quatre vingts"},
    {200, "two hundred", "deux cents"},
    {201, "two hundred one", "deux cent un"},
    {271, "two hundred seventy one", "deux cent soixante et onze"},
    {1000, "one thousand", "mille"},
    {1001, "one thousand one", "mille un"},
    {1789, "one thousand seven hundred eighty nine", "mille sept cent quatre vingt neuf"},
    {2000, "two thousand", "deux mille"},
    {2200, "two thousand two hundred", "deux mille deux cents"},
    {21'000, "twenty one thousand", "vingt et un mille"},
    {80'000, "eighty thousand", "quatre vingt mille"},
    {80'080, "eighty thousand eighty", "quatre vingt mille quatre vingts"},
    {100'000, "one hundred thousand", "cent mille"},
    {200'000, "two hundred thousand", "deux cent mille"},
    {201'300, "two hundred one thousand three hundred", "deux cent un mille trois cents"},
    {999'999, "nine hundred ninety nine thousand nine hundred ninety nine",
     "neuf cent quatre vingt dix neuf mille neuf cent quatre vingt dix neuf"},
    {1'000'000, "one million", "un million"}};

TEST_CASE("numbers are spelt as a table written by hand has them", "[translation]") {
  for (const NumberInWords& expected : by_hand) {
    CHECK(text(english_number(expected.number)) == expected.english);
    CHECK(text(french_number(expected.number)) == expected.french);
  }
  for (const std::int64_t number : {-1, 1'000'001}) {
    check_says(message_of<InvalidArgument>([&] { (void)english_number(number); }), {"give 0 to 1000000"});
    check_says(message_of<InvalidArgument>([&] { (void)french_number(number); }), {"give 0 to 1000000"});
  }
}

TEST_CASE("no two numbers are spelt alike", "[translation]") {
  std::set<std::string> english, french;
  for (std::int64_t number = 0; number <= 20'000; ++number) {
    english.insert(text(english_number(number)));
    french.insert(text(french_number(number)));
  }
  CHECK(english.size() == 20'001);
  CHECK(french.size() == 20'001);
}

TEST_CASE("numbers_to_words has the same pairs everywhere", "[translation]") {
  const auto data = open_dataset("numbers_to_words", {.options = {{"vocabulary", 64}}});
  CHECK(data->size(Split::train) == 20'000);
  CHECK(data->size(Split::test) == 1000);
  CHECK(data->batch_order() == BatchOrder::neighbours);
  // 19 numbers, 8 tens, hundred and thousand; 16 numbers, 5 tens, vingts, et, cent, cents and mille. One
  // million is none of the training numbers.
  CHECK(data->token_count() == special_tokens + 29);
  CHECK(data->class_count() == special_tokens + 26);
  // "seven hundred seventy seven thousand ...": three words and their power, twice but for the last power, as
  // "neuf cent quatre vingt dix sept mille ..." and the end.
  CHECK(data->example_shape() == Shape{9, 14});
  check_says(data->summary(), {"numbers_to_words", "20000 + 1000", "which 0 test pairs"});
  CHECK(open_dataset("numbers_to_words", {})->summary() == data->summary());
}

TEST_CASE("half the numbers of numbers_to_words have five digits or more", "[translation]") {
  const auto data = open_dataset("numbers_to_words", {});
  // Sorted by length: short numbers are at the front, long ones at the end.
  const auto length = [&](std::int64_t place) {
    return data->batch(Split::train, std::vector<std::int64_t>{place}).lengths[0];
  };
  CHECK(length(0) == 1);
  CHECK(length(10'000) >= 6);
  CHECK(length(19'999) == 9);
}

}  // namespace
}  // namespace halfscope::numbers_to_words_test
