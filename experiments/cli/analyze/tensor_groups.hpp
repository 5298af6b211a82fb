// Groups of tensors that are added up: 'layers.*.{attn,mlp}'.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// A pattern of names. `*` is any text and `?` any character: what they stand for is added up. Braces are
/// kept apart, a row for each: `{attn,mlp}` one of these words, `{*}` a part of the name between dots or
/// slashes, `{**}` all parts to come.
class GroupPattern {
 public:
  /// Throws InvalidArgument for braces that are empty, open or within others.
  explicit GroupPattern(std::string_view text);

  /// The group of a tensor that the pattern matches, or that lies below what it matches ("layers.0.attn" has
  /// "layers.0.attn.weight"): the pattern with its braces filled in. Nothing for other tensors.
  [[nodiscard]] std::optional<std::string> group_of(std::string_view name) const;

 private:
  struct Token {
    enum class Kind : std::uint8_t { literal, any_text, any_character, words, part, parts } kind;
    std::string text;                ///< text of a literal
    std::vector<std::string> words;  ///< words, one of which matches
  };
  [[nodiscard]] bool match(std::size_t token, std::string_view rest, std::string& group) const;
  [[nodiscard]] bool match_words(std::size_t token, std::string_view rest, std::string& group) const;
  [[nodiscard]] bool match_text(std::size_t token, std::string_view rest, std::string& group) const;

  std::vector<Token> tokens_;
};

/// Groups of tensors that a user asks to be added up.
struct TensorGroups {
  std::vector<GroupPattern> patterns;  ///< the first that matches counts

  /// The row of tensor `name`; nothing where it has one of its own.
  [[nodiscard]] std::optional<std::string> group_of(const std::string& name) const;
};

}  // namespace halfscope
