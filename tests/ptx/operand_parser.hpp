// Operands as they stand in the text, and their fit to the signature of an opcode.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tests/ptx/names.hpp"

namespace halfscope::ptx {

/// A register, a number, a symbol, or another name, which only a branch may have.
struct TextValue {
  std::optional<std::uint32_t> reg;
  std::optional<Symbol> symbol;
  std::uint64_t number = 0;
  bool negated = false;  ///< !%p1
  std::string_view name;
};

/// One operand; `values` has several where it is a vector in braces.
struct TextOperand {
  enum class Form : std::uint8_t { value, vector, address };
  Form form = Form::value;
  std::vector<TextValue> values;
};

/// Takes the operands of an instruction up to its semicolon, which is left.
[[nodiscard]] std::vector<TextOperand> take_operands(Cursor& cursor, const Names& names);

/// Whether the operands have the numbers and the forms of `signature`.
[[nodiscard]] bool has_shape(const std::vector<TextOperand>& operands, const Signature& signature);

/// Checks `operand` against `item`: registers of its width, a symbol of its space. Throws ParseError.
void check_operand(const Cursor& cursor, const Entry& entry, const TextOperand& operand, const Item& item);

}  // namespace halfscope::ptx
