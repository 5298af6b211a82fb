// The limits of the catalogue's formats, as numbers and in words.
#include "experiments/cli/list_formats.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

Json code_or_null(bool exists, std::uint32_t code, const FloatFormat& format) {
  return exists ? Json(fmt::format("{:0{}x}", code, (code_width(format) + 3) / 4)) : Json();
}

Json format_entry(const NamedFormat& entry) {
  const FloatFormat& format = entry.format;
  return {{"name", std::string(entry.name)},
          {"summary", std::string(entry.summary)},
          {"largest", double{from_bits(format.max_finite_bits())}},
          {"smallest_normal", std::ldexp(1.0, format.min_exponent())},
          {"smallest", std::ldexp(1.0, format.lowest_exponent())},
          {"overflow_limit", overflow_limit(format)},
          {"limit_overflows", limit_overflows(format)},
          {"nan", code_or_null(format.has_nan(), detail::nan_code(format), format)},
          {"infinity", code_or_null(format.has_infinity(), format.max_finite_code() + 1, format)}};
}

std::string power_text(double power) {
  return fmt::format("2^{}", std::ilogb(power));
}

}  // namespace

Json format_entries() {
  Json list = Json::array();
  for (const NamedFormat& entry : format_catalogue) list.push_back(format_entry(entry));
  return list;
}

Json scale_rule_entries() {
  Json list = Json::array();
  for (const ScaleRule& rule : scale_rules) {
    list.push_back({{"name", fmt::format("{}/{}", name_of(rule.scale), rule.name)},
                    {"summary", std::string(rule.summary)}});
  }
  return list;
}

std::string limits_line(const Json& entry) {
  const bool has_nan = !entry["nan"].is_null(), has_infinity = !entry["infinity"].is_null();
  const auto code = [&](const char* key) { return entry[key].get<std::string>(); };
  return fmt::format(
      "largest {:.6g}, {} {:.6g} {}; normal {}, smallest {}; {}, {}", entry["largest"].get<double>(),
      entry["limit_overflows"].get<bool>() ? "from" : "above", entry["overflow_limit"].get<double>(),
      has_infinity ? "inf"
      : has_nan    ? "NaN"
                   : "saturates",
      power_text(entry["smallest_normal"].get<double>()), power_text(entry["smallest"].get<double>()),
      has_nan ? "NaN " + code("nan") : "no NaN", has_infinity ? "inf " + code("infinity") : "no inf");
}

}  // namespace halfscope
