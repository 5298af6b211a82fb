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

void add_magnitude(std::int32_t any, const float* values, std::size_t count, BlockMaxima& block) {
  const bool has_nan = any > static_cast<std::int32_t>(infinity_bits);
  const auto number = static_cast<std::uint32_t>(has_nan ? largest_number(values, count) : any);
  const auto largest = static_cast<std::uint32_t>(any);
  block = {number > block.number ? number : block.number, largest > block.any ? largest : block.any};
}

HALFSCOPE_HD void add_block(const float* values, std::size_t count, BlockMaxima& block) {
  add_magnitude(largest_of_four(quartered(largest_magnitudes(values, count))), values, count, block);
}

/// Four blocks, whose last steps are made together; a length that the compiler knows becomes a few vectors.
HALFSCOPE_HD void add_four_blocks(const float* values, std::size_t columns, BlockMaxima* blocks) {
  FourInts four[4];
  for (std::size_t i = 0; i < 4; ++i) four[i] = quartered(largest_magnitudes(values + i * columns, columns));
  const FourInts any = largest_of_each(four);
  if (any_of_four_negative(static_cast<std::int32_t>(infinity_bits) - any)) {
    for (std::size_t i = 0; i < 4; ++i) add_magnitude(any[i], values + i * columns, columns, blocks[i]);
    return;
  }
  // Without NaNs both maxima of a block are the same, and lie beside each other.
  FourInts both[2];
  static_assert(sizeof both == 4 * sizeof(BlockMaxima));
  std::memcpy(both, blocks, sizeof both);
  both[0] = larger_ones(both[0], __builtin_shufflevector(any, any, 0, 0, 1, 1));
  both[1] = larger_ones(both[1], __builtin_shufflevector(any, any, 2, 2, 3, 3));
  std::memcpy(blocks, both, sizeof both);
}

template <std::size_t columns>
void add_whole_blocks(const float* values, std::size_t blocks, BlockMaxima* maxima) {
  std::size_t i = 0;
  for (; i + 4 <= blocks; i += 4) add_four_blocks(values + i * columns, columns, maxima + i);
  for (; i < blocks; ++i) add_block(values + i * columns, columns, maxima[i]);
}

void add_whole_blocks(const float* values, std::size_t blocks, std::size_t columns, BlockMaxima* maxima) {
  switch (columns) {
    case 16:
      return add_whole_blocks<16>(values, blocks, maxima);
    case 32:
      return add_whole_blocks<32>(values, blocks, maxima);
    case 128:
      return add_whole_blocks<128>(values, blocks, maxima);
    default:
      for (std::size_t i = 0; i < blocks; ++i) add_block(values + i * columns, columns, maxima[i]);
  }
}

}  // namespace

template <>
void maxima_isa<target_isa>(const float* values, std::size_t count, std::size_t columns,
                            BlockMaxima* blocks) {
  const std::size_t whole = count / columns;
  add_whole_blocks(values, whole, columns, blocks);
  if (count % columns != 0) add_block(values + whole * columns, count % columns, blocks[whole]);
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
