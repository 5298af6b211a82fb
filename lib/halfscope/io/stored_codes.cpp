// One table of the code types, and one loop that unpacks any of them.
#include <halfscope/io/detail/stored_codes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {
namespace {

template <FloatFormat format>
constexpr CodeType codes_of(std::string_view name) {
  return {name, static_cast<unsigned>(code_width(format)), from_bits(format.max_finite_bits()),
          static_cast<float>(overflow_limit(format)),
          [](std::uint32_t code) { return decode(code, format); }};
}

constexpr std::array types{
    codes_of<fp8_e4m3fnuz>("F8_E4M3FNUZ"),
    codes_of<fp8_e5m2fnuz>("F8_E5M2FNUZ"),
    CodeType{"F8_E8M0", 8, e8m0::decode(e8m0::largest_code), HUGE_VALF, e8m0::decode},
    codes_of<fp6_e2m3>("F6_E2M3"),
    codes_of<fp6_e3m2>("F6_E3M2"),
    codes_of<fp4_e2m1>("F4"),
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
