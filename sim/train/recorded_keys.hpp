// Settings whose key in a run's config.json is older than their name.
#pragma once

#include <array>
#include <string_view>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

/// config.json keeps the key of before 0.1, since a run is known by the hash of that text. Whoever types a
/// setting is refused the key until 0.2.
struct RecordedKey {
  std::string_view setting, recorded;
};
inline constexpr std::array recorded_keys{
    RecordedKey{"order", "accumulate"},
    RecordedKey{"sum_order", "reduce"},
    RecordedKey{"gradient_sum", "gradient_accumulator"},
};

/// The key of config.json for a setting, and the setting of such a key.
[[nodiscard]] std::string_view recorded_key(std::string_view setting);
[[nodiscard]] std::string_view setting_of(std::string_view recorded);

/// Settings by name as config.json has them, and back. A value that is a setting itself ("order=ORDER" of
/// second_execution) is renamed too; all else stays, and so does the order.
[[nodiscard]] Json recorded(const Json& settings);
[[nodiscard]] Json settings_of(const Json& recorded);

/// Throws InvalidArgument, with the setting to give, where `key` is one of config.json alone.
void refuse_recorded_key(std::string_view key);

}  // namespace halfscope
