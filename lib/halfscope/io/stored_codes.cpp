// One table of the code types, and one loop that unpacks any of them.
#include <halfscope/io/detail/stored_codes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

constexpr FloatFormat finite(int exponent_bits, int mantissa_bits) {
  return {exponent_bits, mantissa_bits, Specials::finite_only};
}

/// The code of minus zero is NaN, and the bias is one more than IEEE 754's: half of the number.
float halved(std::uint32_t code, const FloatFormat& format) {
  return code == 0x80 ? std::numeric_limits<float>::quiet_NaN() : decode(code, format) / 2;
}

/// 2^(code - 127); 255 is NaN.
float power_of_two(std::uint32_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN()
                     : std::ldexp(1.0f, static_cast<int>(code) - 127);
}

constexpr std::array types{
    CodeType{"F8_E4M3FNUZ", 8, 240, [](std::uint32_t code) { return halved(code, finite(4, 3)); }},
    CodeType{"F8_E5M2FNUZ", 8, 57344, [](std::uint32_t code) { return halved(code, finite(5, 2)); }},
    CodeType{"F8_E8M0", 8, 0x1p127f, power_of_two},
    CodeType{"F6_E2M3", 6, 7.5, [](std::uint32_t code) { return decode(code, finite(2, 3)); }},
    CodeType{"F6_E3M2", 6, 28, [](std::uint32_t code) { return decode(code, finite(3, 2)); }},
    CodeType{"F4", 4, 6, [](std::uint32_t code) { return decode(code, finite(2, 1)); }},
};

}  // namespace

const CodeType* find_code_type(std::string_view name) {
  const auto* const found = std::ranges::find(types, name, &CodeType::name);
  return found == types.end() ? nullptr : found;
}

void read_codes(const TensorFile& file, const StoredCodes& tensor, const CodeType& type, std::int64_t first,
                std::span<float> values) {
  const std::uint64_t begin = static_cast<std::uint64_t>(first) * type.bits;
  const std::uint64_t end = begin + values.size() * type.bits;
  std::vector<std::byte> bytes((end + 7) / 8 - begin / 8 + 1);  // one more, which a code never reaches
  file.read_bytes(tensor, begin / 8, std::span(bytes).first(bytes.size() - 1));
  const std::uint32_t mask = (1u << type.bits) - 1u;
  std::uint64_t bit = begin % 8;
  for (float& value : values) {
    const std::uint32_t pair = std::to_integer<std::uint32_t>(bytes[bit / 8]) |
                               std::to_integer<std::uint32_t>(bytes[bit / 8 + 1]) << 8;
    value = type.decode(pair >> (bit % 8) & mask);
    bit += type.bits;
  }
}

}  // namespace halfscope
