// Names that the text of an entry may use, and the declarations that bring them.
#include "tests/ptx/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halfscope::ptx {
namespace {

struct TypeEntry {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array types{
    TypeEntry{".b8", 1},  TypeEntry{".u8", 1},  TypeEntry{".s8", 1},  TypeEntry{".b16", 2},
    TypeEntry{".u16", 2}, TypeEntry{".s16", 2}, TypeEntry{".f16", 2}, TypeEntry{".b32", 4},
    TypeEntry{".u32", 4}, TypeEntry{".s32", 4}, TypeEntry{".f32", 4}, TypeEntry{".b64", 8},
    TypeEntry{".u64", 8}, TypeEntry{".s64", 8}, TypeEntry{".f64", 8},
};

struct SpecialEntry {
  std::string_view name;
  Special number;
};
constexpr std::array specials{
    SpecialEntry{"%tid.x", Special::tid_x},
    SpecialEntry{"%ntid.x", Special::ntid_x},
    SpecialEntry{"%ctaid.x", Special::ctaid_x},
    SpecialEntry{"%nctaid.x", Special::nctaid_x},
};

/// .ptr .global .align 4, which tell the compiler about a pointer.
void skip_pointer(Cursor& cursor) {
  if (!cursor.accept(".ptr")) return;
  if (cursor.at(".global") || cursor.at(".shared") || cursor.at(".local") || cursor.at(".const"))
    cursor.take();
  if (cursor.accept(".align")) (void)cursor.take_number("an alignment");
}

}  // namespace

std::size_t bytes_of_type(const Cursor& cursor, std::string_view type) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const TypeEntry& t) { return t.name == type; });
  if (found == types.end()) cursor.fail(fmt::format("type '{}' is not known", type));
  return found->bytes;
}

Width width_of_type(const Cursor& cursor, std::string_view type) {
  if (type == ".pred") return Width::predicate;
  switch (bytes_of_type(cursor, type)) {
    case 1:
      return Width::bits8;
    case 2:
      return Width::bits16;
    case 4:
      return Width::bits32;
    default:
      return Width::bits64;
  }
}

Declaration take_declaration(Cursor& cursor) {
  Declaration declared;
  const bool has_alignment = cursor.accept(".align");
  if (has_alignment) declared.alignment = cursor.take_number("an alignment");
  const std::size_t element = bytes_of_type(cursor, cursor.take_word("a type"));
  if (!has_alignment) declared.alignment = element;
  skip_pointer(cursor);
  declared.name = cursor.take_word("a name");
  declared.bytes = element;
  if (cursor.accept("[")) {
    declared.unsized = cursor.at("]");
    declared.bytes = declared.unsized ? 0 : element * cursor.take_number("the number of elements");
    cursor.expect("]");
  }
  const std::size_t alignment = declared.alignment;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    cursor.fail(fmt::format("alignment {} of '{}' is no power of two", alignment, declared.name));
  }
  return declared;
}

Names::Names(Entry& entry) : entry_(entry), scopes_(1) {
  entry_.registers.resize(static_cast<std::size_t>(Special::count));
  entry_.registers[zero_register] = {"zero", Width::bits64};
  for (const SpecialEntry& special : specials) {
    const auto number = static_cast<std::uint32_t>(special.number);
    entry_.registers[number] = {std::string(special.name), Width::bits32};
    scopes_.front().emplace(special.name, number);
  }
}

void Names::take_registers(Cursor& cursor) {
  const Width width = width_of_type(cursor, cursor.take_word("a type of registers"));
  do {
    const std::string name(cursor.take_word("the name of a register"));
    if (!cursor.accept("<")) {
      add_register(cursor, name, width);
      continue;
    }
    const std::uint64_t count = cursor.take_number("the number of registers");
    cursor.expect(">");
    for (std::uint64_t i = 0; i < count; ++i) add_register(cursor, fmt::format("{}{}", name, i), width);
  } while (cursor.accept(","));
  cursor.expect(";");
}

void Names::add_register(const Cursor& cursor, const std::string& name, Width width) {
  const auto number = static_cast<std::uint32_t>(entry_.registers.size());
  if (!scopes_.back().emplace(name, number).second)
    cursor.fail(fmt::format("register '{}' is declared twice", name));
  entry_.registers.push_back({name, width});
}

void Names::add_symbol(const Cursor& cursor, const std::string& name, const Symbol& symbol) {
  if (!symbols_.emplace(name, symbol).second) cursor.fail(fmt::format("'{}' is declared twice", name));
}

std::optional<std::uint32_t> Names::find_register(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  }
  return std::nullopt;
}

const Symbol* Names::find_symbol(std::string_view name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

}  // namespace halfscope::ptx
