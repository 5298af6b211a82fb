// The made-up operands of captures.
#include "tests/captures/capture_sets.hpp"

#include <cmath>

#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

enum class Operand : std::uint8_t { a, b, c };

/// Which element: `line` is a's or c's row, or b's column; `place` is k, or c's column.
struct Element {
  Operand operand;
  std::int64_t line;
  std::int64_t place;
  std::uint32_t bits;  ///< random
};

FloatFormat format_of_operand(const CaptureSet& set, Operand operand) {
  return operand == Operand::c ? format_of(set.sum) : format_of(set.input);
}

bool is_fp8(const CaptureSet& set) {
  return set.input == CaptureInput::f8_e4m3 || set.input == CaptureInput::f8_e5m2;
}

/// The format that a register of these numbers is read in.
FloatFormat format_of_code(const FloatFormat& format) {
  return format == tf32 ? fp32 : format;
}

std::uint32_t sign_of(const FloatFormat& format, bool negative) {
  return negative ? 1u << (format.exponent_bits + format.mantissa_bits) : 0u;
}

std::uint32_t code_of(double value, const FloatFormat& format) {
  return encode(round(static_cast<float>(value), {.format = format}), format_of_code(format));
}

/// All bits of a code.
std::uint32_t mask_of(const FloatFormat& format) {
  const int bits = 1 + format.exponent_bits + format.mantissa_bits;
  return bits == 32 ? 0xFFFFFFFFu : (1u << bits) - 1u;
}

bool random_sign(const Element& e) {
  return e.bits >> 31 != 0;
}

/// A finite number of any exponent; of FP32 sums between 2^-40 and 2^23, where the products are.
std::uint32_t wide_code(const Element& e, const FloatFormat& format) {
  if (e.operand == Operand::c && format == fp32) {
    const int exponent = static_cast<int>(e.bits >> 8 & 0x3Fu) - 40;
    const double significand = 1 + (e.bits & 0xFFu) * 0x1p-8 + (e.bits >> 14 & 0x7FFFu) * 0x1p-23;
    return code_of(std::ldexp(random_sign(e) ? -significand : significand, exponent), format);
  }
  const std::uint32_t exponent_mask = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
  const std::uint32_t code = e.bits & mask_of(format);
  return (code & exponent_mask) == exponent_mask ? code ^ (1u << format.mantissa_bits) : code;
}

std::uint32_t zero_code(const Element& e, const FloatFormat& format) {
  const std::int64_t pattern = e.operand == Operand::c ? 2 : e.line % 3;
  return sign_of(format, pattern == 2 ? random_sign(e) : pattern == 1);
}

/// a's numbers are 2^-24 and some of its multiples (of bf16 around 2^-75), b's 2^-10 to 2^-1 (2^-80 to
/// 2^-71).
std::uint32_t tiny_code(const CaptureSet& set, const Element& e, const FloatFormat& format) {
  if (e.operand == Operand::c) return sign_of(format, random_sign(e));
  const bool narrow = set.input == CaptureInput::f16;
  const bool is_a = e.operand == Operand::a;
  const int exponent = is_a ? (narrow ? -24 : -75) : static_cast<int>(e.bits >> 8 & 7u) - (narrow ? 10 : 80);
  const double significand = is_a ? 1 + (e.bits & 3u) : 1 + (e.bits & 1u) * 0.5;
  // Most rows are of one sign: their sums are tiny numbers of it.
  const bool negative = is_a ? e.line % 4 == 0 ? random_sign(e) : e.line % 2 == 1 : false;
  return code_of(std::ldexp(negative ? -significand : significand, exponent), format);
}

/// Products 0 to 2: 2^-25, one of 2^-45 to 2^-48, and 2^-25 again in every second row; else zeros.
std::uint32_t probe_code(const Element& e, const FloatFormat& format) {
  if (e.operand == Operand::c) return 0;
  const bool is_a = e.operand == Operand::a;
  const double sign = is_a && random_sign(e) ? -1 : 1;
  if (e.place == 0) return code_of(sign * (is_a ? 0x1p-13 : 0x1p-12), format);
  if (e.place == 1)
    return code_of(is_a ? sign * 0x1p-24 : std::ldexp(1.0, -21 - static_cast<int>(e.line % 4)), format);
  if (e.place == 2) return code_of(is_a && e.line % 2 == 0 ? 0.0 : sign * (is_a ? 0x1p-13 : 0x1p-12), format);
  return 0;
}

/// Products 0 and 1 are of the same size and of either sign, the others 2^-22 to 2^-29 of them; of FP8, whose
/// steps keep fewer bits, 2^-12 to 2^-19.
std::uint32_t cancelling_code(const CaptureSet& set, const Element& e, const FloatFormat& format) {
  const double significand = 1 + (e.bits & 0x3FFu) * 0x1p-10;
  const double sign = random_sign(e) ? -1 : 1;
  if (e.operand == Operand::c) {
    const int exponent = is_fp8(set) ? -6 : set.sum == DType::f16 ? -14 : -18;
    return code_of(e.bits >> 10 & 1u ? 0.0 : std::ldexp(sign * significand, exponent), format);
  }
  const bool is_a = e.operand == Operand::a;
  if (e.place < 2) {
    // In row r and column n: 2^4 (1 + ...) and its opposite.
    const double size = std::ldexp(1 + static_cast<double>(e.line % 7) * 0x1p-10, 2);
    return code_of(is_a && e.place == 1 ? -size : size, format);
  }
  const int exponent = (is_fp8(set) ? -4 : -9) - static_cast<int>(e.bits >> 12 & 3u);
  return code_of(std::ldexp(sign * significand, exponent), format);
}

std::uint32_t special_code(const Element& e, const FloatFormat& format) {
  const std::uint32_t mantissa = (1u << format.mantissa_bits) - 1u;
  const std::uint32_t infinity = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
  if (e.bits % 8 != 0) return code_of(static_cast<double>(e.bits >> 8 & 7u) - 3, format);
  const std::uint32_t codes[] = {
      infinity, infinity | mantissa, infinity | 1u, infinity - 1u, 1u, 0u, infinity | (mantissa + 1u) / 2,
      infinity};
  return codes[e.bits >> 12 & 7u] | sign_of(format, random_sign(e));
}

std::uint32_t capture_code(const CaptureSet& set, const Element& e) {
  const FloatFormat format = format_of_operand(set, e.operand);
  switch (set.numbers) {
    case CaptureNumbers::random_bits:
      return e.bits & mask_of(format_of_code(format));
    case CaptureNumbers::wide:
      return wide_code(e, format_of_code(format));
    case CaptureNumbers::uniform:
      return e.operand == Operand::c ? 0 : code_of((e.bits >> 8) * 0x1p-23 - 1, format);
    case CaptureNumbers::zeros:
      return zero_code(e, format);
    case CaptureNumbers::tiny:
      return tiny_code(set, e, format);
    case CaptureNumbers::probes:
      return probe_code(e, format);
    case CaptureNumbers::cancelling:
      return cancelling_code(set, e, format);
    case CaptureNumbers::specials:
      break;
  }
  return special_code(e, format);
}

}  // namespace

FloatFormat format_of(CaptureInput input) {
  switch (input) {
    case CaptureInput::f16:
      return fp16;
    case CaptureInput::bf16:
      return bf16;
    case CaptureInput::tf32:
      return tf32;
    case CaptureInput::f8_e4m3:
      return fp8_e4m3;
    case CaptureInput::f8_e5m2:
      break;
  }
  return fp8_e5m2;
}

TileOperands operands_of(const CaptureSet& set, int tile) {
  const TileExtents extents = extents_of(set.instruction);
  TileOperands operands;
  const auto code = [&](Operand operand, std::int64_t line, std::int64_t place, std::int64_t index) {
    const RandomStream stream{.seed = 0x68616C66,
                              .step = static_cast<std::uint32_t>(tile),
                              .site = static_cast<std::uint32_t>(operand)};
    return capture_code(set, {operand, line, place, stream.bits(static_cast<std::uint64_t>(index))});
  };
  for (int row = 0; row < extents.rows; ++row) {
    for (int k = 0; k < set.depth; ++k)
      operands.a.push_back(code(Operand::a, row, k, std::int64_t{row} * set.depth + k));
    for (int n = 0; n < extents.columns; ++n)
      operands.c.push_back(code(Operand::c, row, n, std::int64_t{row} * extents.columns + n));
  }
  for (int k = 0; k < set.depth; ++k) {
    for (int n = 0; n < extents.columns; ++n)
      operands.b.push_back(code(Operand::b, n, k, std::int64_t{k} * extents.columns + n));
  }
  return operands;
}

const std::vector<CaptureFunction>& capture_functions() {
  static const std::vector<CaptureFunction> functions{
      {"hsqrt", [](double x) { return std::sqrt(x); }, true},
      {"hrcp", [](double x) { return 1 / x; }, true},
      {"hrsqrt", [](double x) { return 1 / std::sqrt(x); }, true},
      {"hexp", [](double x) { return std::exp(x); }, false},
      {"hexp2", [](double x) { return std::exp2(x); }, false},
      {"hexp10", [](double x) { return std::pow(10.0, x); }, false},
      {"hlog", [](double x) { return std::log(x); }, false},
      {"hlog2", [](double x) { return std::log2(x); }, false},
      {"hlog10", [](double x) { return std::log10(x); }, false},
      {"hsin", [](double x) { return std::sin(x); }, false},
      {"hcos", [](double x) { return std::cos(x); }, false},
      {"htanh", [](double x) { return std::tanh(x); }, false},
  };
  return functions;
}

}  // namespace halfscope
