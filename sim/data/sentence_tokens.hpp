// Tokens of a sentence of software: words, numbers, punctuation and placeholders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// Stands for what a program fills in (%s, %2$d, %(name)s, {0}) and for tags (<b>). Words are in lower case.
inline constexpr std::string_view placeholder_token = "X";

/// Words in lower case, runs of digits, each punctuation mark or symbol by itself, and `placeholder_token`. A
/// word is a run of letters; an apostrophe between two letters ends it, as in "l' option" and "don' t".
/// Underlines, which mark keys of menus, are left out. Throws InvalidArgument for what is not UTF-8 and for
/// NUL bytes.
[[nodiscard]] std::vector<std::string> sentence_tokens(std::string_view sentence);

/// Whether a token of `sentence_tokens` is a word.
[[nodiscard]] bool is_word_token(std::string_view token);

}  // namespace halfscope
