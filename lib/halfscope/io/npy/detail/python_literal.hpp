// Reads the few Python literals that an .npy header is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// Goes through `text` from its start, skipping blanks before every token. Other text throws
/// InvalidArgument with `where` and the byte, `begin` being that of the text's start.
class PythonLiteral {
 public:
  PythonLiteral(std::string_view text, std::uint64_t begin, std::string_view where)
      : text_(text), begin_(begin), where_(where) {}

  /// Whether `token` came next; if so it is passed.
  [[nodiscard]] bool accept(char token);
  void expect(char token);
  void expect_end();
  /// A string in single or double quotes, without escapes.
  [[nodiscard]] std::string string();
  /// A string, or the text of a list with its brackets.
  [[nodiscard]] std::string string_or_list();
  [[nodiscard]] bool boolean();
  /// A tuple of whole numbers; Python 2 wrote an L after long ones.
  [[nodiscard]] Shape extents();
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  void skip_blanks();
  [[nodiscard]] std::int64_t extent();
  [[nodiscard]] std::string list();

  std::string_view text_;
  std::uint64_t begin_;
  std::string_view where_;
  std::size_t at_ = 0;
};

}  // namespace halfscope
