// Members of JSON objects and of Python's dictionaries in a line of a log.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

inline constexpr std::array<std::string_view, 5> step_names{"step", "_step", "global_step",
                                                            "trainer/global_step", "num_updates"};

/// The member of trainer_state.json that holds its entries.
inline constexpr std::string_view history_key = "\"log_history\"";

/// The value of a member of JSON or of a Python dictionary: a number, with or without quotes.
template <typename Number>
std::optional<Number> member(std::string_view text, std::string_view name) {
  for (const char quote : {'"', '\''}) {
    const std::string key = quote + std::string(name) + quote;
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = text.substr(at + key.size());
    if (!take_word(rest, ":")) continue;
    rest = without_spaces(rest);
    if (rest.starts_with('"')) rest.remove_prefix(1);
    // JSON as Python writes it; no whole number is any of these.
    if constexpr (!std::is_floating_point_v<Number>) {
      if (rest.starts_with("NaN") || rest.starts_with("Infinity")) return std::nullopt;
    }
    if (rest.starts_with("NaN")) return static_cast<Number>(std::numeric_limits<double>::quiet_NaN());
    if (rest.starts_with("Infinity")) return static_cast<Number>(std::numeric_limits<double>::infinity());
    return take_log_number<Number>(rest);
  }
  return std::nullopt;
}

inline std::optional<double> scale_member(std::string_view text) {
  auto scale = member<double>(text, "loss_scale");
  if (!is_scale(scale)) scale.reset();
  return scale;
}

inline std::optional<double> norm_member(std::string_view text) {
  return norm_of(member<double>(text, "grad_norm"));
}

}  // namespace halfscope
