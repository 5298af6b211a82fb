// JSON files and JSON lines (one value per line), with errors that say where.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// Keys stay in the order in which they were added, so a file reads as it was written. <nlohmann/json.hpp>
/// defines the type, for sources that do more than pass it on.
using Json = nlohmann::ordered_json;

/// The JSON value `text`; `where` (a file, a line) opens the message of the InvalidArgument that is thrown
/// for malformed text, for a key that is given twice and for nesting deeper than 64.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view where);

/// The JSON value that the file holds. Throws InvalidArgument with file and byte.
[[nodiscard]] Json read_json(const std::filesystem::path& path);

/// One value per line of `text`; empty lines are skipped. Throws InvalidArgument with `source` and the line,
/// from 1.
[[nodiscard]] std::vector<Json> parse_json_lines(std::string_view text, std::string_view source);

/// The values in the file of JSON lines. Throws InvalidArgument with file and line.
[[nodiscard]] std::vector<Json> read_json_lines(const std::filesystem::path& path);

/// `value` on one line, without the line's end. Numbers read back to the same bits, infinities and NaN become
/// null (JSON has neither), and bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_line(const Json& value);

/// `value` over several lines, indented by 2, with the last line's end.
[[nodiscard]] std::string to_text(const Json& value);

/// Whether `value` is an integer that std::int64_t holds. One written as a float, 3.0, is below 2^53.
[[nodiscard]] bool is_integer(const Json& value);

/// The double that prints as the shortest decimal of the float `value`: 0.1f gives 0.1, not
/// 0.10000000149011612.
[[nodiscard]] double shortest(float value);

}  // namespace halfscope
