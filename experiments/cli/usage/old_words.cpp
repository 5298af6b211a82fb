// One line for each word, and the command line that replaces one.
#include "experiments/cli/usage/old_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/core/name_list.hpp>

#include "experiments/cli/usage/shell_words.hpp"

namespace halfscope {
namespace {

struct OldWord {
  std::string_view command, word;
  std::string_view new_command, new_word;  // an option, with its value where a flag was; none: a value alone
  std::string_view value{}, new_value{};   // how a value begins, and how it begins now
  bool is_for_value = false;               // only an option with such a value is old
};
constexpr std::array old_words{
    OldWord{"analyze", "--formats", "formats", "--format"},
    OldWord{"analyze", "--max-error", "formats", "--max-error"},
    OldWord{"analyze", "--axis", "formats", "--axis"},
    OldWord{"analyze", "--updates", "updates", ""},
    OldWord{"analyze", "--weights", "updates", "--weights"},
    OldWord{"analyze", "--fail-on", "updates", "--max-lost", "lost_updates>", "", true},
    OldWord{"analyze", "--json-lines", "analyze", "--table json"},
    OldWord{"analyze", "--all", "analyze", "--top all"},
    OldWord{"analyze", "--merge-shards", "analyze", "--group {**}"},
    OldWord{"formats", "--all", "formats", "--top all"},
    OldWord{"report", "--format", "report", "--table", "table", "text"},
    OldWord{"memory", "--format", "memory", "--table", "table", "text"},
    OldWord{"calc", "--model", "calc", "--order"},
    OldWord{"list", "accumulators", "list", "orders"},
};

using TypedWords = std::vector<std::string>;

/// The value of the option `words[i]`, behind "=" or the next word.
std::string_view value_of(const TypedWords& words, std::size_t i) {
  const std::size_t equals = words[i].find('=');
  if (equals != std::string::npos) return std::string_view(words[i]).substr(equals + 1);
  return i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
}

/// The line of `words[i]`, which may have a value behind "=".
const OldWord* find_old(const TypedWords& words, std::size_t i) {
  const std::string_view name = std::string_view(words[i]).substr(0, words[i].find('='));
  const auto* const found = std::ranges::find_if(old_words, [&](const OldWord& old) {
    return old.command == words.front() && old.word == name &&
           (!old.is_for_value || value_of(words, i).starts_with(old.value));
  });
  return found == old_words.end() ? nullptr : found;
}

/// Whether the new option has its value in the table.
bool was_flag(const OldWord& old) {
  return old.new_word.find(' ') != std::string_view::npos;
}

std::string new_value(const OldWord& old, std::string_view value) {
  if (old.value.empty() || !value.starts_with(old.value)) return std::string(value);
  return fmt::format("{}{}", old.new_value, value.substr(old.value.size()));
}

/// The word to type in place of `words[i]`; empty: none here.
std::string new_word(const TypedWords& words, std::size_t i) {
  if (const OldWord* const old = find_old(words, i)) {
    if (was_flag(*old)) return "";
    if (words[i].find('=') == std::string::npos) return std::string(old->new_word);
    const std::string value = new_value(*old, value_of(words, i));
    return old->new_word.empty() ? value : fmt::format("{}={}", old->new_word, value);
  }
  const OldWord* const option = i > 1 ? find_old(words, i - 1) : nullptr;
  const bool is_value = option != nullptr && option->word == words[i - 1];
  return is_value ? new_value(*option, words[i]) : words[i];
}

/// The line to type behind the command. Options that were flags come last: of --group the first that matches
/// counts.
std::string new_line(const TypedWords& words) {
  std::string line, last;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (const std::string word = new_word(words, i); !word.empty()) line += " " + shell_word(word);
    const OldWord* const old = find_old(words, i);
    if (old == nullptr || !was_flag(*old)) continue;
    for (const std::string_view word : halfscope::split(old->new_word, ' '))
      last += " " + shell_word(std::string(word));
  }
  return line + last;
}

}  // namespace

void refuse_old_words(const std::vector<std::string>& words) {
  std::size_t first = 1;
  while (first < words.size() && find_old(words, first) == nullptr) ++first;
  if (first >= words.size()) return;
  const OldWord& old = *find_old(words, first);
  throw InvalidArgument(fmt::format("{} has no {}{} since 0.1.0; type: halfscope {}{}", words.front(),
                                    old.word, old.is_for_value ? fmt::format(" {}", old.value) : "",
                                    old.new_command, new_line(words)));
}

}  // namespace halfscope
