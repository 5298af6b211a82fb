// Names and numbers in a line of a log: "key=value", "key: value", "key value", members of objects and of
// dictionaries.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// Meaning of a name in a log.
enum class LogRole : std::uint8_t {
  none,
  global_step,  ///< counted over the whole run
  step,
  batch,  ///< within an epoch
  epoch,
  scale,
  scale_log2,
  norm,
  loss,
  overflow,     ///< true or false
  skipped,      ///< steps since the run began
  other_scale,  ///< may be a scale, and is not read as one
};

inline constexpr std::size_t log_roles = 12;

[[nodiscard]] inline bool is_scale_role(LogRole role) {
  return role == LogRole::scale || role == LogRole::scale_log2;
}

/// The names that logs give to scales, steps, norms and losses, and those that the user gives.
class LogNames {
 public:
  explicit LogNames(LogColumns columns) : columns_(std::move(columns)) {}

  /// The role of a name as a log prints it; the names that its user gives take the place of all others of
  /// their role.
  [[nodiscard]] LogRole role_of(std::string_view name) { return known(name).role; }

 private:
  friend class LogFieldFinder;
  struct Known {
    std::string name{};
    LogRole role = LogRole::none;
    std::string_view kept{};  ///< the name, for as long as these names live
  };
  [[nodiscard]] const Known& known(std::string_view name);
  [[nodiscard]] LogRole find_role(std::string_view name) const;

  /// A log repeats its names; copies of a reader share what it knows of them.
  struct Cache {
    std::set<std::string, std::less<>> kept{};
    std::array<Known, 512> by_hash{};
  };

  LogColumns columns_;
  std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();
};

/// Whether a text contains one of the parts.
[[nodiscard]] bool has_one_of(std::string_view text, std::span<const std::string_view> parts);
/// Whether logs give a loss scale this name.
[[nodiscard]] bool is_scale_name(std::string_view name);
/// Whether a word names an evaluation: "val", "Validation".
[[nodiscard]] bool is_evaluation(std::string_view word);

struct LogField {
  LogRole role = LogRole::none;
  std::string_view name;  ///< as it is printed; lives as long as the names
  double value = 0;
  std::optional<double> total{};   ///< 100 in "25/100"
  std::optional<double> before{};  ///< 65536 in "65536 -> 32768"
  std::size_t end = 0;             ///< place behind the number
  bool heads_list = false;         ///< others stand behind it in a list
};

/// The fields of a line whose names have a role, in order. A number that something other than a space or a
/// closing mark follows was cut, and is none.
void find_log_fields(std::string_view text, LogNames& names, std::vector<LogField>& fields);

/// A number off the front of `text`: decimal, nan, inf, Infinity, true or false, of either case, with sign.
[[nodiscard]] std::optional<double> take_any_number(std::string_view& text);
/// The same with commas between thousands, "65,536.0". A number that another comma and a digit follow is
/// none.
[[nodiscard]] std::optional<double> take_grouped_number(std::string_view& text);

/// Whether a line may tell of a skipped step in words, which are not read.
[[nodiscard]] bool may_tell_of_skip(std::string_view text);

}  // namespace halfscope
