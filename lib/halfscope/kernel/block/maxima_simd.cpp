// Largest magnitudes of blocks, compiled once per instruction set.
#include <halfscope/kernel/block/detail/maxima_simd.hpp>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/block/detail/block_vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

/// Many in four chains, so that few vectors wait for the one before.
HALFSCOPE_HD Ints largest_magnitudes(const float* values, std::size_t count) {
  constexpr std::size_t chains = 4;
  std::size_t i = 0;
  Ints all{};
  if (count >= 2 * chains * lanes) {
    Ints largest[chains] = {};
    for (; i + chains * lanes <= count; i += chains * lanes) {
      for (std::size_t k = 0; k < chains; ++k)
        largest[k] = larger(largest[k], magnitude_of(load(values + i + k * lanes)));
    }
    all = larger(larger(largest[0], largest[1]), larger(largest[2], largest[3]));
  } else if (count >= lanes) {
    all = magnitude_of(load(values));
    i = lanes;
  }
  for (; i + lanes <= count; i += lanes) all = larger(all, magnitude_of(load(values + i)));
  if (i < count) all = larger(all, magnitude_of(load_some(values + i, count - i)));
  return all;
}

/// The largest one that is no NaN's.
std::int32_t largest_number(const float* values, std::size_t count) {
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(magnitude_bits(values[i]));
    largest = magnitude <= infinity && magnitude > largest ? magnitude : largest;
  }
  return largest;
}

BlockMaxima maxima_of(std::int32_t any, const float* values, std::size_t count) {
  const bool has_nan = any > static_cast<std::int32_t>(infinity_bits);
  const std::int32_t number = has_nan ? largest_number(values, count) : any;
  return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(any)};
}

HALFSCOPE_HD BlockMaxima block_maxima(const float* values, std::size_t count) {
  return maxima_of(largest_of_four(quartered(largest_magnitudes(values, count))), values, count);
}

/// Four blocks, whose last steps are made together; a length that the compiler knows becomes a few vectors.
HALFSCOPE_HD void find_four_maxima(const float* values, std::size_t columns, BlockMaxima* blocks) {
  Ints four[4];
  for (std::size_t i = 0; i < 4; ++i) four[i] = largest_magnitudes(values + i * columns, columns);
  const FourInts any = largest_of_each(four);
  if (any_of_four_negative(static_cast<std::int32_t>(infinity_bits) - any)) {
    for (std::size_t i = 0; i < 4; ++i) blocks[i] = maxima_of(any[i], values + i * columns, columns);
    return;
  }
  // Without NaNs both maxima of a block are the same, and lie beside each other.
  const FourInts both[2] = {__builtin_shufflevector(any, any, 0, 0, 1, 1),
                            __builtin_shufflevector(any, any, 2, 2, 3, 3)};
  static_assert(sizeof both == 4 * sizeof(BlockMaxima));
  std::memcpy(blocks, both, sizeof both);
}

template <std::size_t columns>
void find_whole_maxima(const float* values, std::size_t blocks, BlockMaxima* maxima) {
  std::size_t i = 0;
  for (; i + 4 <= blocks; i += 4) find_four_maxima(values + i * columns, columns, maxima + i);
  for (; i < blocks; ++i) maxima[i] = block_maxima(values + i * columns, columns);
}

void find_whole_maxima(const float* values, std::size_t blocks, std::size_t columns, BlockMaxima* maxima) {
  switch (columns) {
    case 16:
      return find_whole_maxima<16>(values, blocks, maxima);
    case 32:
      return find_whole_maxima<32>(values, blocks, maxima);
    case 128:
      return find_whole_maxima<128>(values, blocks, maxima);
    default:
      for (std::size_t i = 0; i < blocks; ++i) maxima[i] = block_maxima(values + i * columns, columns);
  }
}

}  // namespace

template <>
void maxima_isa<target_isa>(const float* values, std::size_t count, std::size_t columns,
                            BlockMaxima* blocks) {
  const std::size_t whole = count / columns;
  find_whole_maxima(values, whole, columns, blocks);
  if (count % columns != 0) blocks[whole] = block_maxima(values + whole * columns, count % columns);
}

template <>
void larger_magnitudes_isa<target_isa>(const float* values, const float* others, std::size_t count,
                                       float* out) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Ints largest = larger(magnitude_of(load(values + i)), magnitude_of(load(others + i)));
    store(out + i, as_floats(largest));
  }
  for (; i < count; ++i) {
    const std::uint32_t x = magnitude_bits(values[i]), y = magnitude_bits(others[i]);
    out[i] = from_bits(x > y ? x : y);
  }
}

}  // namespace halfscope
