// Operands of an instruction: registers, numbers, symbols, vectors in braces, addresses in brackets.
#include "tests/ptx/operand_parser.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope::ptx {
namespace {

using Form = TextOperand::Form;

TextValue take_value(Cursor& cursor, const Names& names) {
  TextValue value;
  if (cursor.at_number()) {
    value.number = cursor.take_number("a number");
    return value;
  }
  value.negated = cursor.accept("!");
  value.name = cursor.take_word("an operand");
  value.reg = names.find_register(value.name);
  if (const Symbol* symbol = names.find_symbol(value.name); symbol != nullptr) value.symbol = *symbol;
  if (!value.reg && !value.symbol && value.name.starts_with('%')) {
    cursor.fail(fmt::format("register '{}' is not declared", value.name));
  }
  return value;
}

TextOperand take_address(Cursor& cursor, const Names& names) {
  TextValue value = take_value(cursor, names);
  if (cursor.accept("+")) value.number = cursor.take_number("an offset");
  cursor.expect("]");
  return {Form::address, {value}};
}

TextOperand take_vector(Cursor& cursor, const Names& names) {
  TextOperand vector{Form::vector, {}};
  do {
    vector.values.push_back(take_value(cursor, names));
  } while (cursor.accept(","));
  cursor.expect("}");
  return vector;
}

TextOperand take_operand(Cursor& cursor, const Names& names) {
  if (cursor.accept("[")) return take_address(cursor, names);
  if (cursor.accept("{")) return take_vector(cursor, names);
  return {Form::value, {take_value(cursor, names)}};
}

/// A vector of one register, as mma.sync has it, counts as that register.
bool fits(const TextOperand& operand, const Item& item) {
  const bool address = operand.form == Form::address;
  return address == (item.kind == ItemKind::address) && operand.values.size() == item.count;
}

/// An address register has 64 bits; in the small spaces 32 do.
bool holds_address(Width width, Space space) {
  return width == Width::bits64 || (width == Width::bits32 && space != Space::global);
}

bool has_width(Width width, const Item& item) {
  if (item.kind == ItemKind::address) return holds_address(width, item.space);
  if (item.or_wider) return width != Width::predicate && width >= item.width;
  return width == item.width;
}

void check_register(const Cursor& cursor, const Register& found, const Item& item) {
  if (has_width(found.width, item)) return;
  cursor.fail(fmt::format("register '{}' has the width '{}', not '{}'", found.name, name_of(found.width),
                          name_of(item.width)));
}

void check_symbol(const Cursor& cursor, const TextValue& value, const Item& item) {
  if (item.kind == ItemKind::address && value.symbol->space != item.space) {
    cursor.fail(fmt::format("'{}' lies in the space '{}', not in '{}'", value.name,
                            name_of(value.symbol->space), name_of(item.space)));
  }
  if (item.kind != ItemKind::address && item.kind != ItemKind::source) {
    cursor.fail(fmt::format("'{}' is no register", value.name));
  }
}

void check_value(const Cursor& cursor, const Entry& entry, const TextValue& value, const Item& item) {
  if (value.negated && item.width != Width::predicate) {
    cursor.fail(fmt::format("'!' stands before '{}', which is no predicate", value.name));
  }
  const bool takes_register = item.kind != ItemKind::constant && item.kind != ItemKind::label;
  if (value.reg && takes_register) return check_register(cursor, entry.registers[*value.reg], item);
  if (value.symbol) return check_symbol(cursor, value, item);
  if (item.kind == ItemKind::label) return;  // resolved at the end of the entry
  if (!value.name.empty()) cursor.fail(fmt::format("'{}' is not known here", value.name));
  if (item.kind == ItemKind::result) {
    cursor.fail(fmt::format("number {} stands where a register is needed", value.number));
  }
}

}  // namespace

std::vector<TextOperand> take_operands(Cursor& cursor, const Names& names) {
  std::vector<TextOperand> operands;
  if (cursor.at(";")) return operands;
  do {
    operands.push_back(take_operand(cursor, names));
  } while (cursor.accept(","));
  return operands;
}

bool has_shape(const std::vector<TextOperand>& operands, const Signature& signature) {
  return std::equal(operands.begin(), operands.end(), signature.items.begin(),
                    signature.items.begin() + static_cast<std::ptrdiff_t>(signature.size), fits);
}

void check_operand(const Cursor& cursor, const Entry& entry, const TextOperand& operand, const Item& item) {
  for (const TextValue& value : operand.values) check_value(cursor, entry, value, item);
}

}  // namespace halfscope::ptx
