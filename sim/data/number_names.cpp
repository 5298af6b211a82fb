// Spells numbers.
#include "sim/data/number_names.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t largest_number = 1'000'000;
constexpr std::array<std::string_view, 20> english_units{
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> english_tens{"",      "",      "twenty",  "thirty", "forty",
                                                        "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<std::string_view, 17> french_units{
    "zéro", "un",  "deux", "trois", "quatre", "cinq",     "six",    "sept", "huit",
    "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize"};
constexpr std::array<std::string_view, 7> french_tens{"",         "",          "vingt",   "trente",
                                                      "quarante", "cinquante", "soixante"};

void add(Words& words, std::string_view word) {
  words.emplace_back(word);
}

std::string_view word_of(const auto& table, std::int64_t place) {
  return table[static_cast<std::size_t>(place)];
}

void check_number(std::int64_t number) {
  if (number >= 0 && number <= largest_number) return;
  throw InvalidArgument(fmt::format("{} in words: give 0 to {}", number, largest_number));
}

/// 1 to 999.
void add_english(Words& words, std::int64_t number) {
  if (number >= 100) {
    add(words, word_of(english_units, number / 100));
    add(words, "hundred");
  }
  const std::int64_t rest = number % 100;
  if (rest >= 20) add(words, word_of(english_tens, rest / 10));
  const std::int64_t unit = rest >= 20 ? rest % 10 : rest;
  if (unit > 0) add(words, word_of(english_units, unit));
}

/// 1 to 19.
void add_french_unit(Words& words, std::int64_t number) {
  if (number > 16) add(words, "dix");
  add(words, word_of(french_units, number > 16 ? number - 10 : number));
}

/// "vingts" and "cents" end a number; they lose their s before another number and before mille.
enum class Followed : bool { no, yes };

/// 1 to 99: 70 and 90 count on from 60 and 80, which is four twenties.
void add_french_below_hundred(Words& words, std::int64_t number, Followed followed) {
  if (number < 20) return add_french_unit(words, number);
  const std::int64_t tens = number < 60 ? number / 10 : number < 80 ? 6 : 8, rest = number - 10 * tens;
  if (tens == 8) {
    add(words, "quatre");
    add(words, rest == 0 && followed == Followed::no ? "vingts" : "vingt");
  } else {
    add(words, word_of(french_tens, tens));
    if (rest == 1 || rest == 11) add(words, "et");
  }
  if (rest > 0) add_french_unit(words, rest);
}

/// 1 to 999.
void add_french(Words& words, std::int64_t number, Followed followed) {
  const std::int64_t hundreds = number / 100, rest = number % 100;
  if (hundreds > 1) add(words, word_of(french_units, hundreds));
  if (hundreds > 0) add(words, hundreds > 1 && rest == 0 && followed == Followed::no ? "cents" : "cent");
  if (rest > 0) add_french_below_hundred(words, rest, followed);
}

}  // namespace

std::vector<std::string> english_number(std::int64_t number) {
  check_number(number);
  if (number == 0) return {std::string(english_units[0])};
  if (number == largest_number) return {"one", "million"};
  Words words;
  if (number >= 1000) {
    add_english(words, number / 1000);
    add(words, "thousand");
  }
  if (number % 1000 > 0) add_english(words, number % 1000);
  return words;
}

std::vector<std::string> french_number(std::int64_t number) {
  check_number(number);
  if (number == 0) return {std::string(french_units[0])};
  if (number == largest_number) return {"un", "million"};
  Words words;
  if (number >= 2000) add_french(words, number / 1000, Followed::yes);
  if (number >= 1000) add(words, "mille");
  if (number % 1000 > 0) add_french(words, number % 1000, Followed::no);
  return words;
}

}  // namespace halfscope
