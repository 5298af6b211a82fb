// Decoding by the table of RFC 3629; letters by ranges.
#include "sim/data/utf8.hpp"

namespace halfscope {
namespace {

bool within(char32_t value, char32_t first, char32_t last) {
  return first <= value && value <= last;
}

/// How a sequence starts: its length, the bits that its first byte holds, and its smallest value.
struct Lead {
  std::size_t bytes;
  unsigned mask;
  char32_t smallest;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0x7F, 0};
  if ((byte & 0xE0u) == 0xC0) return {2, 0x1F, 0x80};
  if ((byte & 0xF0u) == 0xE0) return {3, 0x0F, 0x800};
  if ((byte & 0xF8u) == 0xF0) return {4, 0x07, 0x10000};
  return {0, 0, 0};
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.bytes == 0 || text.size() < lead.bytes) return {};
  char32_t value = byte(0) & lead.mask;
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  if (value < lead.smallest || value > 0x10FFFF || within(value, 0xD800, 0xDFFF)) return {};
  return {value, lead.bytes};
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | value >> 6);
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

char32_t lower_case(char32_t value) {
  if (within(value, U'A', U'Z') || within(value, 0x391, 0x3A9) || within(value, 0x410, 0x42F)) {
    return value + 0x20;
  }
  if (within(value, 0xC0, 0xDE) && value != 0xD7) return value + 0x20;
  if (within(value, 0x400, 0x40F)) return value + 0x50;
  if (value == 0x178) return 0xFF;
  // Extended-A has each capital right before its small letter; where they start odd, these ranges say.
  if (within(value, 0x139, 0x148) || within(value, 0x179, 0x17E)) return value + value % 2;
  if (within(value, 0x100, 0x177) && !within(value, 0x130, 0x131) && value != 0x138 && value != 0x149) {
    return value | 1;
  }
  return value;
}

bool is_letter(char32_t value) {
  if (value < 0x80) return within(value, U'a', U'z') || within(value, U'A', U'Z');
  if (within(value, 0x80, 0xBF)) return value == 0xAA || value == 0xB5 || value == 0xBA;
  return value != 0xD7 && value != 0xF7 && !within(value, 0x2000, 0x206F) && !within(value, 0x3000, 0x303F) &&
         value != 0xFEFF;
}

}  // namespace halfscope
