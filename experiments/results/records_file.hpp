// Files of records, a JSON object per line, as a run writes them.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

enum class Reading : std::uint8_t { continues, ends };

/// Hands over the records of `path` until `take` ends the reading; none where there is no such file. A last
/// line without its end is still being written and is left out. Throws InvalidArgument with file and line for
/// a line that is no JSON, and for a record that lacks a key, or has it of another type, that `take` asks
/// for.
void read_records(const std::filesystem::path& path, const std::function<Reading(const Json& record)>& take);

/// As read_records, of a text that `path` stands for in messages.
void read_records_of(std::istream& text, const std::filesystem::path& path,
                     const std::function<Reading(const Json& record)>& take);

}  // namespace halfscope
