// Words of a text: tokens, lower case beyond ASCII, vocabularies, and texts that are none.
#include "sim/data/tokenizer.hpp"

#include "sim/data/utf8.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
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
}

TEST_CASE("UTF-8 is decoded and encoded, and nothing else is taken for it", "[words]") {
  for (const char32_t value : {0x41u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, value);
    const CodePoint point = decode_utf8(text + "x");
    CHECK(point.value == value);
    CHECK(point.bytes == text.size());
  }
  for (const char* wrong : {"\x80", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                            "\xF4\x90\x80\x80", "\xFF", "\xF8\x88\x80\x80\x80"}) {
    CHECK(decode_utf8(wrong).bytes == 0);
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
}  // namespace halfscope
