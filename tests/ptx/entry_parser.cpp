// Parser of one entry: declarations first, then instructions, then what only its end decides.
#include "tests/ptx/entry_parser.hpp"

#include <fmt/format.h>

namespace halfscope::ptx {

EntryParser::EntryParser(Cursor& cursor, const std::vector<Declaration>& outside)
    : cursor_(cursor), names_(entry_) {
  for (const Declaration& declared : outside) add_shared(declared);
}

Entry EntryParser::take() {
  entry_.name = cursor_.take_word("the name of an entry");
  take_parameters();
  take_launch_bounds();
  take_body();
  finish();
  return std::move(entry_);
}

void EntryParser::take_parameters() {
  cursor_.expect("(");
  while (!cursor_.at(")")) {
    cursor_.expect(".param");
    const Declaration declared = take_declaration(cursor_);
    const std::size_t offset = aligned(entry_.parameter_bytes, declared.alignment);
    entry_.parameters.push_back({declared.name, offset, declared.bytes});
    entry_.parameter_bytes = offset + declared.bytes;
    names_.add_symbol(cursor_, declared.name, {Space::param, offset, false});
    if (!cursor_.at(")")) cursor_.expect(",");
  }
  cursor_.expect(")");
}

void EntryParser::take_launch_bounds() {
  while (!cursor_.at("{")) {
    const std::string_view bound = cursor_.take_word("a bound of the launch");
    if (bound != ".maxntid" && bound != ".minnctapersm") {
      cursor_.fail(fmt::format("directive '{}' is not known", bound));
    }
    std::uint64_t product = 1;
    do {
      product *= cursor_.take_number("a bound of the launch");
    } while (cursor_.accept(","));
    if (bound == ".maxntid") entry_.max_threads = static_cast<std::uint32_t>(product);
  }
}

void EntryParser::take_body() {
  cursor_.expect("{");
  const std::size_t outside = names_.depth();
  names_.open();
  while (names_.depth() > outside) {
    if (cursor_.at_end()) cursor_.fail(fmt::format("entry '{}' has no closing brace", entry_.name));
    take_statement();
  }
}

void EntryParser::take_statement() {
  if (cursor_.accept("{")) return names_.open();
  if (cursor_.accept("}")) return names_.close();
  if (cursor_.accept(";")) return;
  if (cursor_.peek().text.starts_with('.')) return take_directive();
  if (cursor_.peek().kind == TokenKind::word && cursor_.peek(1).text == ":") return take_label();
  take_instruction();
}

void EntryParser::take_directive() {
  if (cursor_.accept(".reg")) return names_.take_registers(cursor_);
  if (cursor_.accept(".pragma")) {
    take_pragma();
  } else if (cursor_.accept(".shared")) {
    add_shared(take_declaration(cursor_));
  } else if (cursor_.accept(".local")) {
    add_local(take_declaration(cursor_));
  } else {
    fail_at(cursor_.line(), fmt::format("directive '{}' is not known", cursor_.peek().text));
  }
  cursor_.expect(";");
}

/// Advice to the compiler: not to unroll, and which bytes of a vector load are used.
void EntryParser::take_pragma() {
  const std::string_view pragma = cursor_.take().text;
  if (pragma == "\"nounroll\"" || pragma.starts_with("\"used_bytes_mask ")) return;
  cursor_.fail(fmt::format("pragma {} is not known", pragma));
}

void EntryParser::add_shared(const Declaration& declared) {
  if (declared.unsized) {
    names_.add_symbol(cursor_, declared.name, {Space::shared, 0, true});
    dynamic_alignment_ = std::max(dynamic_alignment_, declared.alignment);
    return;
  }
  const std::size_t offset = aligned(entry_.shared_bytes, declared.alignment);
  names_.add_symbol(cursor_, declared.name, {Space::shared, offset, false});
  entry_.shared_arrays.push_back({declared.name, offset, declared.bytes});
  entry_.shared_bytes = offset + declared.bytes;
}

void EntryParser::add_local(const Declaration& declared) {
  const std::size_t offset = aligned(entry_.local_bytes, declared.alignment);
  names_.add_symbol(cursor_, declared.name, {Space::local, offset, false});
  entry_.local_bytes = offset + declared.bytes;
}

void EntryParser::take_label() {
  const std::string name(cursor_.take().text);
  const auto place = static_cast<std::uint32_t>(entry_.code.size());
  if (!labels_.emplace(name, place).second) cursor_.fail(fmt::format("label '{}' stands twice", name));
  cursor_.expect(":");
}

Operand EntryParser::take_guard() {
  if (!cursor_.accept("@")) return {zero_register, 1};
  const bool negated = cursor_.accept("!");
  const std::string_view name = cursor_.take_word("a predicate");
  const auto reg = names_.find_register(name);
  if (!reg) cursor_.fail(fmt::format("register '{}' is not declared", name));
  if (entry_.registers[*reg].width != Width::predicate)
    cursor_.fail(fmt::format("'{}' is no predicate", name));
  return {*reg, negated ? 1u : 0u};
}

void EntryParser::take_instruction() {
  Instruction instruction;
  instruction.line = cursor_.line();
  const char* begin = cursor_.peek().text.data();
  instruction.guard = take_guard();
  const std::string_view name = cursor_.take_word("an opcode");
  if (opcodes_called(name).empty()) cursor_.fail(fmt::format("opcode '{}' is not known", name));
  const std::vector<TextOperand> operands = take_operands(cursor_, names_);
  instruction.opcode = find_opcode(name, operands);
  const Signature& signature = all_opcodes()[instruction.opcode]->action.signature;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_operand(cursor_, entry_, operands[i], signature.items[i]);
    add_values(instruction, operands[i], signature.items[i]);
  }
  const char* end = cursor_.peek().text.data();
  cursor_.expect(";");
  instruction.text.assign(begin, end);
  entry_.code.push_back(std::move(instruction));
}

std::uint32_t EntryParser::find_opcode(std::string_view name,
                                       const std::vector<TextOperand>& operands) const {
  for (const std::uint32_t number : opcodes_called(name)) {
    if (has_shape(operands, all_opcodes()[number]->action.signature)) return number;
  }
  cursor_.fail(fmt::format("'{}' takes other operands", name));
}

void EntryParser::add_values(Instruction& instruction, const TextOperand& operand, const Item& item) {
  for (const TextValue& value : operand.values) {
    const Open place{entry_.code.size(), instruction.operands.size(), std::string(value.name)};
    if (item.kind == ItemKind::label) branches_.push_back(place);
    if (value.symbol && value.symbol->dynamic) dynamic_addresses_.push_back(place);
    Operand added{value.reg.value_or(zero_register), value.number + (value.negated ? 1 : 0)};
    if (value.symbol) added.value += value.symbol->offset;
    instruction.operands.push_back(added);
  }
}

void EntryParser::finish() {
  resolve_labels();
  place_dynamic_shared();
  check_end();
}

void EntryParser::resolve_labels() {
  for (const Open& branch : branches_) {
    Instruction& instruction = entry_.code[branch.instruction];
    const auto found = labels_.find(branch.label);
    if (found == labels_.end())
      fail_at(instruction.line, fmt::format("label '{}' is not known", branch.label));
    if (found->second == entry_.code.size()) {
      fail_at(instruction.line, fmt::format("label '{}' stands behind the last instruction", branch.label));
    }
    instruction.target = found->second;
  }
}

void EntryParser::place_dynamic_shared() {
  entry_.has_dynamic_shared = !dynamic_addresses_.empty();
  if (!entry_.has_dynamic_shared) return;
  entry_.shared_bytes = aligned(entry_.shared_bytes, dynamic_alignment_);
  for (const Open& place : dynamic_addresses_) {
    entry_.code[place.instruction].operands[place.operand].value += entry_.shared_bytes;
  }
}

/// No thread may run past the last instruction.
void EntryParser::check_end() const {
  const auto stays = [](const Instruction& last) {
    const Opcode& opcode = *all_opcodes()[last.opcode];
    const bool leaves = opcode.action.kind == Kind::exit || opcode.action.kind == Kind::branch;
    return last.guard.reg == zero_register && (leaves || opcode.name == "trap");
  };
  if (!entry_.code.empty() && stays(entry_.code.back())) return;
  cursor_.fail(fmt::format("entry '{}' does not end with ret", entry_.name));
}

}  // namespace halfscope::ptx
