// Errors of every strict reader of JSON, in the same words.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

inline constexpr std::size_t deepest_json = 64;

[[noreturn]] inline void refuse_json_depth(std::string_view where) {
  throw InvalidArgument(fmt::format("{}: JSON nested deeper than {}", where, deepest_json));
}

[[noreturn]] inline void refuse_json_key(std::string_view where, std::string_view key) {
  throw InvalidArgument(
      fmt::format("{}: the key {} is given twice", where, to_line(std::string(key.substr(0, 100)))));
}

/// nlohmann's message without its "[json.exception...] " tag, and without the place in a text of one line,
/// which is the byte once more; cut, for it quotes the token that it stopped at.
[[noreturn]] inline void refuse_json_syntax(std::string_view where, std::size_t byte,
                                            const nlohmann::json::exception& error) {
  std::string_view message = error.what();
  const auto cut_after = [&message](std::string_view end) {
    const auto at = message.find(end);
    if (at != std::string_view::npos) message.remove_prefix(at + end.size());
  };
  cut_after("] ");
  if (message.starts_with("parse error at line 1, ")) cut_after(": ");
  throw InvalidArgument(
      fmt::format("{}: byte {}: not valid JSON: {}", where, byte, escaped(message.substr(0, 200))));
}

}  // namespace halfscope
