// One character after the other, decoded strictly: overlong forms, surrogates and halves of characters are
// bytes.
#include <halfscope/core/escape.hpp>

#include <cstddef>
#include <cstdint>

namespace halfscope {
namespace {

/// A character of UTF-8, or one byte that belongs to none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool is_text = false;
};

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::size_t length_after(std::uint32_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

Character first_character(std::string_view text) {
  constexpr std::uint32_t least_of_length[] = {0, 0, 0x80, 0x800, 0x10000};
  const std::uint32_t lead = byte_at(text, 0);
  const Character stray{lead, 1, false};
  const std::size_t length = length_after(lead);
  if (length == 0 || length > text.size()) return stray;
  if (length == 1) return {lead, 1, true};
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0u) != 0x80u) return stray;
    code = code << 6 | (byte_at(text, i) & 0x3Fu);
  }
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < least_of_length[length] || code > 0x10FFFF || is_surrogate) return stray;
  return {code, length, true};
}

/// Line and paragraph separators, and what turns the direction of the text around it.
bool moves_text(std::uint32_t code) {
  return code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_code(std::string& out, char kind, std::uint32_t code, int digits) {
  out += '\\';
  out += kind;
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[(code >> (4 * i)) & 15u];
}

void append_control(std::string& out, std::uint32_t code) {
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      append_code(out, 'x', code, 2);
  }
}

template <typename Append>
std::string rewritten(std::string_view text, Append&& append) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    append(out, character, text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return rewritten(text, [](std::string& out, const Character& character, std::string_view bytes) {
    const std::uint32_t code = character.code;
    if (!character.is_text) return append_code(out, 'x', code, 2);
    if (code < 0x20 || code == 0x7F) return append_control(out, code);
    if (code >= 0x80 && code < 0xA0) return append_code(out, 'u', code, 4);
    if (moves_text(code)) return append_code(out, 'u', code, 4);
    out += bytes;
  });
}

std::string escaped_bytes(std::string_view text) {
  return rewritten(text, [](std::string& out, const Character& character, std::string_view bytes) {
    if (!character.is_text) return append_code(out, 'x', character.code, 2);
    out += bytes;
  });
}

}  // namespace halfscope
