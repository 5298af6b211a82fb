// Words of a text: tokens, lower case beyond ASCII, vocabularies, and texts that are none.
#include "sim/data/tokenizer.hpp"

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::tokenizer_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("a line becomes its words, its marks and an end", "[words]") {
  CHECK(tokenise("Ge1:1 In the beginning; (God's) WORD!\n", "t") ==
        Words{"in", "the", "beginning", ";", "god's", "word", "!", "<eos>"});
  CHECK(tokenise("1Sam2:3 a\n\n  \nb 12 c", "t") == Words{"a", "<eos>", "b", "c", "<eos>"});
  CHECK(tokenise("Ge1:x y", "t") == Words{"ge", ":", "x", "y", "<eos>"});
  CHECK(tokenise("", "t").empty());
  CHECK(tokenise("12 34\n", "t").empty());
}

TEST_CASE("letters beyond ASCII belong to words, in lower case", "[words]") {
  CHECK(tokenise("\xEF\xBB\xBFÄRGER über Straße, Ünïcode!", "t") ==
        Words{"ärger", "über", "straße", ",", "ünïcode", "!", "<eos>"});
  CHECK(tokenise("Русский ΑΒΓ Łódź Ÿ ŽENA", "t") == Words{"русский", "αβγ", "łódź", "ÿ", "žena", "<eos>"});
  CHECK(tokenise("l’été “oui” — non…", "t") == Words{"l'été", "oui", "non", "<eos>"});
  CHECK(tokenise("太初 有道。", "t") == Words{"太初", "有道", "<eos>"});
  CHECK(tokenise("e\u0301te\u0301 ΆΛΦΑ", "t") == Words{"e\u0301te\u0301", "άλφα", "<eos>"});
}

TEST_CASE("digits, marks and symbols beyond ASCII separate words, as those of ASCII do", "[words]") {
  CHECK(tokenise("a،b！c٣d→e²f×g", "t") == Words{"a", "b", "c", "d", "e", "f", "g", "<eos>"});
  CHECK(tokenise("٣ ② → ×", "t").empty());
}

TEST_CASE("letters of one to four bytes are kept", "[words]") {
  const Words words{"z", "\u00AA", "\u07EA", "\u0800", "\uFFDC", "\U00010000", "\U0002FA1D"};
  std::string text;
  for (const std::string& word : words) text += word + " ";
  Words expected = words;
  expected.emplace_back("<eos>");
  CHECK(tokenise(text, "t") == expected);
  // The last code point of each length, none of them a letter, separates.
  CHECK(tokenise("a\x7F"
                 "b\u07FFc\uFFFFd\U0010FFFFe",
                 "t") == Words{"a", "b", "c", "d", "e", "<eos>"});
}

TEST_CASE("bytes that are not UTF-8 are refused with their line and the first of them", "[words]") {
  for (const std::string wrong : {
           "\x80",
           "\xBF",
           "\xC3(",
           "\xE2\x80(",
           "\xF0\x9F\x98(",  // continuations too many and too few
           "\xC0\x80",
           "\xC1\xBF",
           "\xE0\x80\x80",
           "\xE0\x9F\xBF",
           "\xF0\x80\x80\x80",
           "\xF0\x8F\xBF\xBF",  // overlong
           "\xED\xA0\x80",
           "\xED\xBF\xBF",  // surrogates
           "\xF4\x90\x80\x80",
           "\xF5\x80\x80\x80",  // above U+10FFFF
           "\xF8\x88\x80\x80\x80",
           "\xFE",
           "\xFF",  // no lead byte of RFC 3629
           "\xC3",
           "\xE2",
           "\xE2\x80",
           "\xF0\x9F",
           "\xF0\x9F\x98",  // cut off
       }) {
    const std::string byte = fmt::format("0x{:02x}", static_cast<unsigned char>(wrong[0]));
    for (const char* rest : {"", "\n", "\nc\n", " c\n"}) {
      const std::string text = "a\nb " + wrong + rest;
      INFO(text);
      check_says(message_of<InvalidArgument>([&] { (void)tokenise(text, "some.txt"); }),
                 {"some.txt: line 2 ", byte, "not UTF-8"});
    }
  }
}

TEST_CASE("what is no text is refused with its line", "[words]") {
  using namespace std::string_literals;
  check_says(message_of<InvalidArgument>([] { (void)tokenise("a\nb \xC3( c\n", "some.txt"); }),
             {"some.txt", "line 2", "0xc3", "UTF-8"});
  check_says(message_of<InvalidArgument>([] { (void)tokenise("a\nb\nc\0d"s, "some.txt"); }),
             {"some.txt", "line 3", "NUL"});
}

TEST_CASE("the most frequent words have tokens of their own", "[words]") {
  const Words words{"b", "a", "c", "b", "a", "d", "b"};
  const Vocabulary all = number_words(words, 100);
  CHECK(all.words == Words{"b", "a", "c", "d"});  // a tie is in byte order
  CHECK(all.size() == 5);
  CHECK(all.types == 4);
  CHECK(all.tokens == std::vector<std::int32_t>{1, 2, 3, 1, 2, 4, 1});
  const Vocabulary small = number_words(words, 3);
  CHECK(small.size() == 3);
  CHECK(small.types == 4);
  CHECK(small.tokens == std::vector<std::int32_t>{1, 2, 0, 1, 2, 0, 1});
  for (const std::int64_t size : {0, 1, -3}) {
    check_says(message_of<InvalidArgument>([&] { (void)number_words(words, size); }),
               {"vocabulary", "2 or more"});
  }
}

}  // namespace
}  // namespace halfscope::tokenizer_test
