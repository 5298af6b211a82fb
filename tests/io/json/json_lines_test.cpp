// JSON that is read back exactly, and errors that name file, line and byte.
#include <halfscope/io/json/json_lines.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::json_lines_test {
namespace {

std::string refusal(std::string_view text) {
  return message_of<InvalidArgument>([&] { static_cast<void>(parse_json(text, "config.json")); });
}

std::string nested(int depth) {
  const auto count = static_cast<std::size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST_CASE("lines are values, in order, and keys keep theirs", "[json]") {
  const auto values = parse_json_lines("{\"z\":1,\"a\":[2]}\n\n  \r\n3\r\nnull", "trace.jsonl");
  REQUIRE(values.size() == 3);
  CHECK(to_line(values[0]) == R"({"z":1,"a":[2]})");
  CHECK(values[1] == 3);
  CHECK(values[2].is_null());
  CHECK(parse_json_lines("", "trace.jsonl").empty());
}

TEST_CASE("a wrong line is named by file and number", "[json]") {
  const TemporaryFolder folder;
  for (const auto* wrong :
       {"{\"a\":1", "{\"a\":1} 2", "nonsense", "{'a':1}", "[1,]", "NaN", "\"\xff\"", "1e999"}) {
    const auto path = folder.put("trace.jsonl", std::string("{}\n\n") + wrong + "\n{}\n");
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_json_lines(path)); }),
               {path.string() + ": line 3: ", "JSON"});
  }
}

TEST_CASE("a wrong file is named with the byte", "[json]") {
  const TemporaryFolder folder;
  const auto path = folder.put("config.json", "{\n  \"seeds\": x\n}\n");
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_json(path)); }),
             {path.string() + ": byte 14: not valid JSON", "line 2, column 12"});
  folder.put("config.json", "");
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_json(path)); }),
             {path.string(), "byte 1"});
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_json(folder / "missing.json")); }),
             {(folder / "missing.json").string(), "No such file"});
}

TEST_CASE("a key given twice is refused, in whichever object", "[json]") {
  check_says(refusal(R"({"a":1,"b":2,"a":3})"), {"config.json", "key \"a\" is given twice"});
  check_says(refusal(R"([{"a":{"c":1,"c":1}}])"), {"key \"c\" is given twice"});
  CHECK(parse_json(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})", "config.json").size() == 2);
}

TEST_CASE("nesting stops at 64, long before the stack does", "[json]") {
  CHECK(parse_json(nested(64), "config.json").is_array());
  for (const int depth : {65, 1000, 5'000'000})
    check_says(refusal(nested(depth)), {"config.json", "deeper than 64"});
}

TEST_CASE("a message stays short when the wrong token is long", "[json]") {
  CHECK(refusal("\"" + std::string(100'000, 'x')).size() < 300);
  CHECK(refusal("{\"" + std::string(100'000, 'x') + "\":1,\"" + std::string(100'000, 'x') + "\":1}").size() <
        300);
}

TEST_CASE("infinities and NaN print as null", "[json]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(to_line({{"loss", std::nan("")}, {"scale", infinity}, {"low", -infinity}}) ==
        R"({"loss":null,"scale":null,"low":null})");
  CHECK(std::isnan(shortest(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("bytes that are not UTF-8 do not stop a record from being written", "[json]") {
  CHECK(to_line("a\xff") == "\"a\xef\xbf\xbd\"");
}

TEST_CASE("to_text is indented and ends its last line", "[json]") {
  CHECK(to_text(Json{{"a", 1}}) == "{\n  \"a\": 1\n}\n");
}

TEST_CASE("numbers read back to the same bits", "[json]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    const double again = parse_json(to_line(value), "number").get<double>();
    REQUIRE(std::bit_cast<std::uint64_t>(again) == bits);

    const auto single_bits = static_cast<std::uint32_t>(bits);
    const auto single = std::bit_cast<float>(single_bits);
    if (!std::isfinite(single)) continue;
    const auto single_again = parse_json(to_line(shortest(single)), "number").get<float>();
    REQUIRE(std::bit_cast<std::uint32_t>(single_again) == single_bits);
  }
}

TEST_CASE("an integer fits into 64 bits, and may be written as a float", "[json]") {
  for (const char* text : {"0", "-3", "3.0", "-1e15", "9223372036854775807", "-9223372036854775808"})
    CHECK(is_integer(parse_json(text, "number")));
  for (const char* text :
       {"2.5", "1e300", "9007199254740992.0", "9223372036854775808", "true", "\"3\"", "null"})
    CHECK_FALSE(is_integer(parse_json(text, "number")));
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    CHECK_FALSE(is_integer(value));
}

TEST_CASE("a float prints as its shortest decimal", "[json]") {
  CHECK(to_line(shortest(0.1f)) == "0.1");
  CHECK(to_line(shortest(65504.0f)) == "65504.0");
  CHECK(to_line(shortest(-0.0f)) == "-0.0");
  CHECK(to_line(shortest(0x1p-149f)) == "1e-45");
}

}  // namespace
}  // namespace halfscope::json_lines_test
