// Tokens of sentences as software has them.
#include "sim/data/sentence_tokens.hpp"

#include <fmt/ranges.h>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::sentence_tokens_test {
namespace {

std::string spaced(std::string_view sentence) {
  return fmt::format("{}", fmt::join(sentence_tokens(sentence), " "));
}

TEST_CASE("words are in lower case, and punctuation stands alone", "[translation]") {
  CHECK(spaced("Cannot open file: no such file.") == "cannot open file : no such file .");
  CHECK(spaced("\xC3\x89t\xC3\xA9 \xC2\xAB tr\xC3\xA8s \xC2\xBB chaud\xE2\x80\xA6") ==
        "\xC3\xA9t\xC3\xA9 \xC2\xAB tr\xC3\xA8s \xC2\xBB chaud \xE2\x80\xA6");
  CHECK(spaced("Don't, l\xE2\x80\x99option 'x' dogs'") == "don' t , l' option ' x ' dogs '");
  CHECK(spaced("_Open E_xit") == "open exit");
  CHECK(spaced("version 12.5a") == "version 12 . 5 a");
  CHECK(spaced("a\xC2\xA0: b\tc") == "a : b c");  // with a space that does not break
  CHECK(spaced("").empty());
  CHECK(spaced(" \t ").empty());
}

TEST_CASE("what a program fills in is a placeholder", "[translation]") {
  for (const char* one : {"%s", "%d", "%-5.2lf", "%2$s", "%*d", "%llu", "%(name)s", "%1", "%'d", "{0}",
                          "{name}", "{}", "<b>", "</b>", "<a href=\"x y\">", "<!-- note -->"}) {
    INFO(one);
    CHECK(spaced(one) == "X");
    CHECK(spaced("on" + std::string(one) + ".") == "on X .");
  }
  CHECK(spaced("50 % of 100%.") == "50 % of 100 % .");
  CHECK(spaced("100%") == "100 %");
  CHECK(spaced("%(open") == "% ( open");
  CHECK(spaced("%(name) x") == "% ( name ) x");
  CHECK(spaced("1 < 2 > 1") == "1 < 2 > 1");
  CHECK(spaced("a <b") == "a < b");
  CHECK(spaced("{a b}") == "{ a b }");
  CHECK(spaced("x X") == "x x");  // the placeholder is no word
}

TEST_CASE("words are told from other tokens", "[translation]") {
  for (const char* word : {"a", "l'", "\xC3\xA9t\xC3\xA9"}) CHECK(is_word_token(word));
  for (const char* other : {"X", "12", ".", "", "'"}) CHECK_FALSE(is_word_token(other));
}

TEST_CASE("sentences that are no text are refused", "[translation]") {
  check_says(message_of<InvalidArgument>([] { (void)sentence_tokens("caf\xE9"); }), {"0xe9", "not UTF-8"});
  check_says(message_of<InvalidArgument>([] { (void)sentence_tokens("l'\xE9t\xE9"); }),
             {"0xe9", "not UTF-8"});
  check_says(message_of<InvalidArgument>([] { (void)sentence_tokens({"a\0b", 3}); }), {"NUL"});
}

}  // namespace
}  // namespace halfscope::sentence_tokens_test
