// Quotes, and quotes within them.
#include "experiments/cli/usage/shell_words.hpp"

#include <string_view>

namespace halfscope {

std::string quoted_for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string::npos;
  return is_plain ? text : quoted_for_shell(text);
}

}  // namespace halfscope
