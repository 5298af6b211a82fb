// Bits of integers in little-endian words.
#include <halfscope/io/layouts/detail/packed_integers.hpp>

#include <array>
#include <cstring>

namespace halfscope {
namespace {

constexpr std::int64_t word_bits = 32;

std::int64_t words_for(std::int64_t count, unsigned bits) {
  return (count * static_cast<std::int64_t>(bits) + word_bits - 1) / word_bits;
}

bool is_of_words(const StoredCodes& codes) {
  return codes.type == "I32";
}

}  // namespace

std::int64_t PackedIntegers::words() const {
  return packing == BitPacking::along_rows ? columns : words_for(columns, bits);
}

bool PackedIntegers::fits() const {
  constexpr std::int64_t most = std::int64_t{1} << 56;
  if (rows < 0 || columns < 0 || rows > most || columns > most || (columns > 0 && rows > most / columns))
    return false;
  std::uint64_t bytes = 0;
  if (!is_of_words(*codes))
    bytes = static_cast<std::uint64_t>(rows * ((columns * static_cast<std::int64_t>(bits) + 7) / 8));
  else
    bytes = 4 * static_cast<std::uint64_t>(
                    (packing == BitPacking::along_rows ? words_for(rows, bits) : rows) * words());
  return bytes == codes->bytes;
}

void IntegerRows::read(std::int64_t row, std::int64_t first, std::span<int> values) {
  integers_.packing == BitPacking::along_rows ? read_along_rows(row, first, values)
                                              : read_along_columns(row, first, values);
}

int IntegerRows::number(std::uint64_t bits) const {
  const std::uint64_t mask = (std::uint64_t{1} << integers_.bits) - 1;
  const auto value = static_cast<int>(bits & mask);
  return integers_.is_signed && value > integers_.largest() ? value - (1 << integers_.bits) : value;
}

void IntegerRows::read_along_columns(std::int64_t row, std::int64_t first, std::span<int> values) {
  const std::int64_t bits = integers_.bits;
  const std::int64_t row_bytes =
      is_of_words(*integers_.codes) ? 4 * integers_.words() : (integers_.columns * bits + 7) / 8;
  std::int64_t begin = first, count = std::ssize(values);
  if (integers_.packing == BitPacking::awq) {  // whole words
    begin = first / 8 * 8;
    count = (first + count + 7) / 8 * 8 - begin;
  }
  const std::int64_t first_byte = begin * bits / 8, end_byte = ((begin + count) * bits + 7) / 8;
  bytes_.assign(static_cast<std::size_t>(end_byte - first_byte) + 1, std::byte{0});  // one more for the pair
  file_.read_bytes(*integers_.codes, static_cast<std::uint64_t>(row * row_bytes + first_byte),
                   std::span(bytes_).first(bytes_.size() - 1));
  constexpr std::array<std::int64_t, 8> place_in_word{0, 4, 1, 5, 2, 6, 3, 7};
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    std::int64_t at = first + i;
    if (integers_.packing == BitPacking::awq)
      at = at / 8 * 8 + place_in_word[static_cast<std::size_t>(at % 8)];
    const std::int64_t bit = at * bits - first_byte * 8;
    const auto byte = static_cast<std::size_t>(bit / 8);
    const std::uint32_t pair =
        std::to_integer<std::uint32_t>(bytes_[byte]) | std::to_integer<std::uint32_t>(bytes_[byte + 1]) << 8;
    values[static_cast<std::size_t>(i)] = number(pair >> (bit % 8));
  }
}

void IntegerRows::load(std::int64_t at, WordRow& row) const {
  if (row.at == at) return;
  const auto count = static_cast<std::size_t>(integers_.columns);
  row.words.resize(count);
  file_.read_bytes(*integers_.codes, static_cast<std::uint64_t>(at) * 4 * count,
                   std::as_writable_bytes(std::span(row.words)));
  row.at = at;
}

void IntegerRows::read_along_rows(std::int64_t row, std::int64_t first, std::span<int> values) {
  const std::int64_t bit = row * static_cast<std::int64_t>(integers_.bits), shift = bit % word_bits;
  const bool reaches_next = shift + integers_.bits > word_bits;
  load(bit / word_bits, low_);
  if (reaches_next) load(bit / word_bits + 1, high_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = static_cast<std::size_t>(first) + i;
    std::uint64_t pair = low_.words[column];
    if (reaches_next) pair |= std::uint64_t{high_.words[column]} << word_bits;
    values[i] = number(pair >> shift);
  }
}

}  // namespace halfscope
