// One line for each word, and the command line that replaces one.
#include "experiments/cli/usage/old_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <halfscope/core/error.hpp>

#include "experiments/cli/usage/shell_words.hpp"

namespace halfscope {
namespace {

struct OldWord {
  std::string_view command, word;
  std::string_view new_command, new_word;
  std::string_view value{}, new_value{};  // one that has a new name too
};
constexpr std::array old_words{
    OldWord{"analyze", "--formats", "formats", "--format"},
    OldWord{"analyze", "--max-error", "formats", "--max-error"},
    OldWord{"analyze", "--axis", "formats", "--axis"},
    OldWord{"report", "--format", "report", "--table", "table", "text"},
    OldWord{"memory", "--format", "memory", "--table", "table", "text"},
    OldWord{"calc", "--model", "calc", "--order"},
    OldWord{"list", "accumulators", "list", "orders"},
};

/// The line of `word`, which may have a value behind "=".
const OldWord* find_old(std::string_view command, std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const auto* const found = std::ranges::find_if(
      old_words, [&](const OldWord& old) { return old.command == command && old.word == name; });
  return found == old_words.end() ? nullptr : found;
}

std::string new_value(const OldWord& option, const std::string& value) {
  return !option.value.empty() && value == option.value ? std::string(option.new_value) : value;
}

/// `word` as it is to be typed, behind the word `before`.
std::string new_word(std::string_view command, const std::string& before, const std::string& word) {
  if (const OldWord* const old = find_old(command, word)) {
    const std::string name(old->new_word);
    const std::size_t equals = word.find('=');
    return shell_word(equals == std::string::npos ? name
                                                  : name + "=" + new_value(*old, word.substr(equals + 1)));
  }
  const OldWord* const option = find_old(command, before);
  const bool is_value = option != nullptr && option->word == before;
  return shell_word(is_value ? new_value(*option, word) : word);
}

}  // namespace

void refuse_old_words(const std::vector<std::string>& words) {
  const std::string& command = words.front();
  const auto first = std::ranges::find_if(
      words, [&](const std::string& word) { return find_old(command, word) != nullptr; });
  if (first == words.end()) return;
  const OldWord& old = *find_old(command, *first);
  std::string line = fmt::format("halfscope {}", old.new_command);
  for (std::size_t i = 1; i < words.size(); ++i) line += " " + new_word(command, words[i - 1], words[i]);
  throw InvalidArgument(fmt::format("{} has no {} since 0.1; type: {}", command, old.word, line));
}

}  // namespace halfscope
