// Matches names token by token: the shortest text first, and of all parts the longest.
#include "experiments/cli/analyze/tensor_groups.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/core/name_list.hpp>

namespace halfscope {
namespace {

bool separates(char c) {
  return c == '.' || c == '/';
}

}  // namespace

GroupPattern::GroupPattern(std::string_view text) {
  const auto refuse = [pattern = std::string(text)](std::string_view why) {
    throw InvalidArgument(fmt::format(
        "--group '{}': {}; give a pattern such as 'layers.*.{{attn,mlp}}' or 'layers.{{*}}'", pattern, why));
  };
  if (text.empty()) refuse("it is empty");
  while (!text.empty()) {
    const char first = text.front();
    if (first == '*' || first == '?') {
      tokens_.push_back({first == '*' ? Token::Kind::any_text : Token::Kind::any_character, {}, {}});
      text.remove_prefix(1);
    } else if (first == '{') {
      const std::size_t end = text.find_first_of("{}", 1);
      if (end == std::string_view::npos || text[end] == '{') refuse("a brace is not closed");
      const std::string_view inside = text.substr(1, end - 1);
      if (inside.empty()) refuse("braces are empty");
      if (inside == "*" || inside == "**") {
        tokens_.push_back({inside == "*" ? Token::Kind::part : Token::Kind::parts, {}, {}});
      } else {
        const std::vector<std::string_view> words = split_at_commas(inside);
        tokens_.push_back({Token::Kind::words, {}, {words.begin(), words.end()}});
      }
      text.remove_prefix(end + 1);
    } else {
      if (first == '}') refuse("a brace is closed that was not opened");
      const std::string_view literal = text.substr(0, text.find_first_of("*?{}"));
      tokens_.push_back({Token::Kind::literal, std::string(literal), {}});
      text.remove_prefix(literal.size());
    }
  }
}

std::optional<std::string> GroupPattern::group_of(std::string_view name) const {
  std::string group;
  if (!match(0, name, group)) return std::nullopt;
  return group;
}

bool GroupPattern::match(std::size_t token, std::string_view rest, std::string& group) const {
  if (token == tokens_.size()) return rest.empty() || separates(rest.front());
  const Token& next = tokens_[token];
  switch (next.kind) {
    case Token::Kind::literal:
      if (!rest.starts_with(next.text)) return false;
      group += next.text;
      return match(token + 1, rest.substr(next.text.size()), group);
    case Token::Kind::any_character:
      if (rest.empty()) return false;
      group += '?';
      return match(token + 1, rest.substr(1), group);
    case Token::Kind::words:
      return match_words(token, rest, group);
    case Token::Kind::any_text:
    case Token::Kind::part:
    case Token::Kind::parts:
      break;
  }
  return match_text(token, rest, group);
}

bool GroupPattern::match_words(std::size_t token, std::string_view rest, std::string& group) const {
  const std::size_t before = group.size();
  for (const std::string& word : tokens_[token].words) {
    if (!rest.starts_with(word)) continue;
    group += word;
    if (match(token + 1, rest.substr(word.size()), group)) return true;
    group.resize(before);
  }
  return false;
}

bool GroupPattern::match_text(std::size_t token, std::string_view rest, std::string& group) const {
  const Token::Kind kind = tokens_[token].kind;
  const std::size_t before = group.size(), shortest = kind == Token::Kind::any_text ? 0 : 1;
  for (std::size_t tried = shortest; tried <= rest.size(); ++tried) {
    const std::size_t length = kind == Token::Kind::parts ? rest.size() + shortest - tried : tried;
    if (kind == Token::Kind::part && separates(rest[length - 1])) return false;
    group += kind == Token::Kind::any_text ? std::string_view("*") : rest.substr(0, length);
    if (match(token + 1, rest.substr(length), group)) return true;
    group.resize(before);
  }
  return false;
}

std::optional<std::string> TensorGroups::group_of(const std::string& name) const {
  for (const GroupPattern& pattern : patterns) {
    if (auto group = pattern.group_of(name)) return group;
  }
  return std::nullopt;
}

}  // namespace halfscope
