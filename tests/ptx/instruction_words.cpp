// An instruction's line as words.
#include "tests/ptx/instruction_words.hpp"

#include <algorithm>

#include "tests/ptx/lexer.hpp"

namespace halfscope::ptx {
namespace {

bool is_operand(const Token& token) {
  return token.kind == TokenKind::word || token.kind == TokenKind::number;
}

/// Tokens without the guard, @%p1 or @!%p1.
std::size_t tokens_of_guard(const std::vector<Token>& tokens) {
  if (tokens[0].text != "@") return 0;
  return tokens[1].text == "!" ? 3 : 2;
}

}  // namespace

InstructionWords words_of(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  InstructionWords words;
  if (tokens.size() < 2) return words;
  const std::size_t first = tokens_of_guard(tokens);
  words.guarded = first != 0;
  words.ends_block = tokens[1].text == ":" || tokens[first].text.starts_with("bra");
  if (words.ends_block || tokens[first].kind != TokenKind::word) return words;
  words.opcode = tokens[first].text;
  for (std::size_t i = first + 1; i < tokens.size(); ++i) {
    if (is_operand(tokens[i])) words.operands.push_back(tokens[i].text);
    if (tokens[i].text == "}" && words.results == 0) words.results = words.operands.size();
  }
  if (words.results == 0) words.results = std::min(std::size_t{1}, words.operands.size());
  return words;
}

}  // namespace halfscope::ptx
