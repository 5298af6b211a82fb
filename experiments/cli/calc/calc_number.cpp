// Reading operands; a decimal is read twice, rounded down and up, so that it is rounded to the format only
// once.
#include "experiments/cli/calc/calc_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdlib>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

constexpr int lowest_exponent = -100'000;  // below the smallest number that any format rounds up

/// -1 where `c` is no hex digit.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::size_t skip_digits(std::string_view text, std::size_t from) {
  while (from < text.size() && text[from] >= '0' && text[from] <= '9') ++from;
  return from;
}

/// Digits with a point among them or not, and an exponent or not; what strtold takes beside them is refused.
bool is_plain_decimal(std::string_view text) {
  const std::size_t whole = skip_digits(text, 0);
  std::size_t end = whole;
  std::size_t digits = whole;
  if (end < text.size() && text[end] == '.') {
    end = skip_digits(text, whole + 1);
    digits = end - 1;
  }
  if (digits == 0) return false;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    ++end;
    if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
    const std::size_t first = end;
    end = skip_digits(text, first);
    if (end == first) return false;
  }
  return end == text.size();
}

bool has_hex_prefix(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

/// 0x, hex digits with a point among them or not, and p with a decimal exponent of two, as C's %a writes it.
bool is_hex_float(std::string_view text) {
  if (!has_hex_prefix(text)) return false;
  std::size_t at = 2, digits = 0;
  for (bool point = false; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (hex_digit(text[at]) >= 0) {
      ++digits;
    } else {
      break;
    }
  }
  if (digits == 0 || at == text.size() || (text[at] != 'p' && text[at] != 'P')) return false;
  ++at;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  const std::size_t end = skip_digits(text, at);
  return end > at && end == text.size();
}

bool is_word(std::string_view text, std::string_view word) {
  return text.size() == word.size() && std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

/// The C library's conversion in one direction; IEEE 754 has it correctly rounded in the current one.
long double read_rounded(const char* digits, int direction) {
  const int before = std::fegetround();
  std::fesetround(direction);
  const long double value = std::strtold(digits, nullptr);
  std::fesetround(before);
  return value;
}

/// A decimal or hex float without a sign, to at least 53 bits, the rest as a sticky bit.
Exact read_magnitude(std::string_view text) {
  const std::string digits(text);
  const long double below = read_rounded(digits.c_str(), FE_DOWNWARD);
  const long double above = read_rounded(digits.c_str(), FE_UPWARD);
  if (below == 0) return {0, lowest_exponent, above == 0 ? 0u : 1u};
  int exponent = 0;
  const long double scaled = std::ldexp(std::frexp(below, &exponent), 64);
  const auto significand = static_cast<std::uint64_t>(scaled);
  const bool sticky = below != above || static_cast<long double>(significand) != scaled;
  return {0, exponent - 64, significand | (sticky ? 1u : 0u)};
}

}  // namespace

std::string quoted(std::string_view text) {
  return "'" + escaped(text.substr(0, 40)) + (text.size() > 40 ? "...'" : "'");
}

bool is_bit_pattern(std::string_view text) {
  return has_hex_prefix(text) && text.find_first_of("pP.") == std::string_view::npos;
}

float parse_bit_pattern(std::string_view text, const FloatFormat& format) {
  std::uint64_t code = 0;
  const std::uint64_t codes = std::uint64_t{1} << code_width(format);
  for (const char c : text.substr(2)) {
    const int digit = hex_digit(c);
    if (digit < 0)
      throw InvalidArgument(fmt::format("{} is not hexadecimal; give 0x and hex digits", quoted(text)));
    code = code * 16 + static_cast<std::uint64_t>(digit);
    if (code >= codes) {
      throw InvalidArgument(fmt::format("{} has more bits than {}, which has {}", quoted(text),
                                        to_string(format), code_width(format)));
    }
  }
  if (text.size() == 2) throw InvalidArgument(fmt::format("{} has no hex digits", quoted(text)));
  return decode(static_cast<std::uint32_t>(code), format);
}

Flagged round_decimal(std::string_view text, const Quantizer& q, std::uint32_t random_bits) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::uint32_t sign = text.starts_with('-') ? sign_bit : 0;
  const std::string_view magnitude = text.substr(has_sign ? 1 : 0);
  if (is_word(magnitude, "nan")) return {from_bits(quiet_nan_bits)};
  if (is_word(magnitude, "inf") || is_word(magnitude, "infinity")) return round_infinity(sign, q);
  if (!is_plain_decimal(magnitude) && !is_hex_float(magnitude)) {
    throw InvalidArgument(fmt::format(
        "{} is neither a bit pattern (0x3c00) nor a number (-1.5, 6e-8, 0x1.8p-3, inf, nan)", quoted(text)));
  }
  Exact x = read_magnitude(magnitude);
  x.sign = sign;
  return x.significand == 0 ? Flagged{from_bits(sign)} : round_exact(x, q, random_bits);
}

float parse_operand(std::string_view text, const FloatFormat& format) {
  return is_bit_pattern(text) ? parse_bit_pattern(text, format) : round_decimal(text, {format}, 0).value;
}

}  // namespace halfscope
