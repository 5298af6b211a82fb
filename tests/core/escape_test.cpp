// Names of others on a terminal: what is escaped, and what is left alone.
#include <halfscope/core/escape.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::escape_test {
namespace {

TEST_CASE("what a terminal would act on is escaped", "[escape]") {
  CHECK(escaped("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(escaped("a\nb\rc\td\x07\x7f") == "a\\nb\\rc\\td\\x07\\x7f");
  CHECK(escaped(std::string_view("nul\0end", 7)) == "nul\\x00end");
  CHECK(escaped("\xc2\x9b"
                "31m") == "\\u009b31m");  // C1's control sequence introducer
  CHECK(escaped("gpj.\xe2\x80\xae"
                "exe") == "gpj.\\u202eexe");  // right to left
  CHECK(escaped("one\xe2\x80\xa8line") == "one\\u2028line");
}

TEST_CASE("text stays text", "[escape]") {
  for (const char* text : {"", "layers.0.weight", "back\\slash",
                           "gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe6\xa8\xa9", "\xf0\x9f\x8e\x89"}) {
    CHECK(escaped(text) == text);
    CHECK(escaped_bytes(text) == text);
  }
}

TEST_CASE("bytes that are no UTF-8 stay different", "[escape]") {
  CHECK(escaped("\xff") == "\\xff");
  CHECK(escaped_bytes("a\xfe\xff") == "a\\xfe\\xff");
  CHECK(escaped("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(escaped("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(escaped("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(escaped("cut\xe6\xa8") == "cut\\xe6\\xa8");
  CHECK(escaped_bytes("\x1b") == "\x1b");  // JSON has its own escape of it
}

}  // namespace
}  // namespace halfscope::escape_test
