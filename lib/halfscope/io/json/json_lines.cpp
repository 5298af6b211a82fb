// Strict parsing over nlohmann::json, which by itself takes a repeated key and any depth.
#include <halfscope/io/json/json_lines.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/detail/json_errors.hpp>

namespace halfscope {
namespace {

/// Reads the text once without storing it, and throws where it breaks a rule. (nlohmann's parser callbacks
/// could do it in the one reading, but then each value costs a search through those before it.)
class StrictRules : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StrictRules(std::string_view where) : where_(where) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    refuse_json_key(where_, name);
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) override {
    refuse_json_syntax(where_, byte, error);
  }

 private:
  bool open() {
    if (keys_.size() == deepest_json) refuse_json_depth(where_);
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::string_view where_;
  std::vector<std::set<std::string>> keys_;  // keys of each open object; an open array has none
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  StrictRules rules(where);
  nlohmann::json::sax_parse(text, &rules);
  return Json::parse(text);
}

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), printable(path));
}

std::vector<Json> parse_json_lines(std::string_view text, std::string_view source) {
  std::vector<Json> values;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view content = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(content.size() + 1, text.size()));
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    values.push_back(parse_json(content, fmt::format("{}: line {}", source, line)));
  }
  return values;
}

std::vector<Json> read_json_lines(const std::filesystem::path& path) {
  return parse_json_lines(read_file(path), printable(path));
}

std::string to_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

bool is_integer(const Json& value) {
  if (value.is_number_unsigned()) return std::in_range<std::int64_t>(value.get<std::uint64_t>());
  if (!value.is_number_float()) return value.is_number_integer();
  const auto number = value.get<double>();
  return std::fabs(number) < 0x1p53 && number == std::trunc(number);
}

double shortest(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 64> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  double result = value;
  std::from_chars(digits.data(), written.ptr, result);
  return result;
}

}  // namespace halfscope
