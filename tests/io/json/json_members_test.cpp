// A JSON object member by member: the values of the whole parser, the rules of the strict one, and a bound.
#include <halfscope/io/json/detail/json_members.hpp>

#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::json_members_test {
namespace {

using Members = std::vector<std::pair<std::string, nlohmann::json>>;

Members members_of(std::string_view text) {
  Members members;
  CHECK(read_json_members(text, "f", [&](const std::string& name, const nlohmann::json& value) {
    members.emplace_back(name, value);
  }));
  return members;
}

std::string refusal(std::string_view text) {
  return message_of<InvalidArgument>(
      [&] { (void)read_json_members(text, "f", [](const auto&, const auto&) {}); });
}

TEST_CASE("members come in order, with the values that the whole parser gives", "[json]") {
  const std::string text =
      R"({"b": [1, -2, [3.5, {"x": null, "y": []}], {}], "a": {"k": {"l": [true, "s"]}, "m": 1},
                               "": false, "b": 18446744073709551615})";
  const Members members = members_of(text);
  REQUIRE(members.size() == 4);
  CHECK(members[0] ==
        std::pair(std::string("b"), nlohmann::json::parse(R"([1,-2,[3.5,{"x":null,"y":[]}],{}])")));
  CHECK(members[1] == std::pair(std::string("a"), nlohmann::json::parse(R"({"k":{"l":[true,"s"]},"m":1})")));
  CHECK(members[2] == std::pair(std::string(), nlohmann::json(false)));
  CHECK(members[3].second == 18446744073709551615u);
  CHECK(members_of("{}").empty());
}

TEST_CASE("what is no object has no members", "[json]") {
  for (const char* text : {"[]", "[{\"a\": 1}, [2]]", "3", "null", "\"s\""}) {
    CHECK_FALSE(read_json_members(text, "f", [](const auto&, const auto&) { FAIL("a member"); }));
  }
}

TEST_CASE("members are held to the strict rules in their words", "[json]") {
  const std::vector<std::string> broken{R"({"a": {"k": 1, "k": 2}})",
                                        R"({"a": [1, {"k": 1, "k": 2}]})",
                                        R"({"a": 1)",
                                        R"({"a": 01})",
                                        "",
                                        "{\"a\": \"\xff\"}",
                                        std::string(70, '['),
                                        "{\"a\":" + std::string(70, '[')};
  for (const std::string& text : broken) {
    INFO(text);
    CHECK(refusal(text) == message_of<InvalidArgument>([&] { (void)parse_json(text, "f"); }));
  }
}

TEST_CASE("a member of very many values is refused, many members are not", "[json]") {
  std::string values = "0", keys = "\"0\":0", all = "\"0\":0";
  for (int i = 1; i < 100'000; ++i) values += ",0";
  for (int i = 1; i < 100'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  for (int i = 1; i < 300'000; ++i) all += ",\"" + std::to_string(i) + "\":0";
  for (const std::string& text : {"{\"t\":[" + values + "]}", "{\"t\":{" + keys + "}}"}) {
    check_says(refusal(text), {"f: \"t\" has more than 100000 values"});
  }
  CHECK(members_of("{" + all + "}").size() == 300'000);
}

}  // namespace
}  // namespace halfscope::json_members_test
