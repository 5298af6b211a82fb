// Texts taken apart at a character; lists of names as the command line takes them: "A,B", or "all".
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace halfscope {

/// Stands for every known name.
inline constexpr std::string_view all_names = "all";

/// The texts between the `separator`s of `text`, one empty text where it is empty.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without the blanks around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The texts between the `separator`s that no parenthesis encloses, trimmed; one empty text where it is
/// empty.
[[nodiscard]] std::vector<std::string_view> split_outside_parentheses(std::string_view text, char separator);

/// The texts between the commas of `list`, one empty text where it is empty.
[[nodiscard]] std::vector<std::string_view> split_at_commas(std::string_view list);

/// The names between the commas of `list`, one empty name where it is empty; `known` where it is "all".
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view list,
                                                     std::span<const std::string_view> known);

}  // namespace halfscope
