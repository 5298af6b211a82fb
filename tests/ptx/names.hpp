// Names that the text of an entry may use: registers by scope, parameters and arrays, special registers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/cursor.hpp"
#include "tests/ptx/module.hpp"

namespace halfscope::ptx {

/// A name that stands for an address. That of dynamic shared memory is known when the entry has been read.
struct Symbol {
  Space space = Space::shared;
  std::size_t offset = 0;
  bool dynamic = false;
};

/// A declaration `.align 4 .b8 name[16]`.
struct Declaration {
  std::string name;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  bool unsized = false;  ///< name[]
};

/// Bytes of a type such as .b32; throws ParseError for one that is not known.
[[nodiscard]] std::size_t bytes_of_type(const Cursor& cursor, std::string_view type);
[[nodiscard]] Width width_of_type(const Cursor& cursor, std::string_view type);

/// Takes a declaration, from its alignment or type on; modifiers of pointers, .ptr and its space, are left
/// out.
[[nodiscard]] Declaration take_declaration(Cursor& cursor);

[[nodiscard]] constexpr std::size_t aligned(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

class Names {
 public:
  /// Gives `entry` the zero register and the special ones.
  explicit Names(Entry& entry);

  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  [[nodiscard]] std::size_t depth() const { return scopes_.size(); }

  /// Takes a declaration of registers after `.reg`: a name with a count in angle brackets, or a list of
  /// names.
  void take_registers(Cursor& cursor);
  void add_symbol(const Cursor& cursor, const std::string& name, const Symbol& symbol);

  [[nodiscard]] std::optional<std::uint32_t> find_register(std::string_view name) const;
  [[nodiscard]] const Symbol* find_symbol(std::string_view name) const;

 private:
  using Scope = std::map<std::string, std::uint32_t, std::less<>>;
  void add_register(const Cursor& cursor, const std::string& name, Width width);

  Entry& entry_;
  std::vector<Scope> scopes_;
  std::map<std::string, Symbol, std::less<>> symbols_;
};

}  // namespace halfscope::ptx
