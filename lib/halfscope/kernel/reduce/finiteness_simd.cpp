// The loop over exponent fields, compiled once per instruction set.
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/reduce/detail/finiteness_simd.hpp>

#include <cstring>

namespace halfscope {
namespace {

/// Arrays beyond the second cache are read at the speed of memory, which one stream of addresses does not
/// reach.
constexpr std::size_t streams = 4;
constexpr std::size_t bytes_ahead = 1024;  // that each stream asks for before it needs them

template <typename Bits>
bool has_full_exponent(const Bits* numbers, std::size_t count, Bits exponent) {
  using Vector [[gnu::vector_size(vector_bytes)]] = Bits;
  constexpr std::size_t width = vector_bytes / sizeof(Bits);
  const Vector field = Vector{} + exponent;
  const std::size_t part = count / streams / width * width;
  Vector full[streams] = {};
  for (std::size_t i = 0; i < part; i += width) {
    for (std::size_t stream = 0; stream < streams; ++stream) {
      const Bits* from = numbers + stream * part + i;
      __builtin_prefetch(from + bytes_ahead / sizeof(Bits), 0, 2);
      Vector bits;
      std::memcpy(&bits, from, sizeof bits);
      full[stream] |= reinterpret_cast<Vector>((bits & field) == field);
    }
  }
  Bits any = 0;
  for (const Vector& one : full)
    for (std::size_t lane = 0; lane < width; ++lane) any = static_cast<Bits>(any | one[lane]);
  for (std::size_t i = streams * part; i < count; ++i)
    any = static_cast<Bits>(any | ((numbers[i] & exponent) == exponent ? 1 : 0));
  return any != 0;
}

}  // namespace

template <>
bool has_full_exponent_isa<target_isa>(const std::uint16_t* numbers, std::size_t count,
                                       std::uint16_t exponent) {
  return has_full_exponent(numbers, count, exponent);
}
template <>
bool has_full_exponent_isa<target_isa>(const std::uint32_t* numbers, std::size_t count,
                                       std::uint32_t exponent) {
  return has_full_exponent(numbers, count, exponent);
}
template <>
bool has_full_exponent_isa<target_isa>(const std::uint64_t* numbers, std::size_t count,
                                       std::uint64_t exponent) {
  return has_full_exponent(numbers, count, exponent);
}

}  // namespace halfscope
