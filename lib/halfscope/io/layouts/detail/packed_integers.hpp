// Integers of few bits that lie packed in a file, as a matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// The axis along which integers follow each other in a word; the lowest bits come first, and an integer may
/// begin in one word and end in the next.
enum class BitPacking : std::uint8_t {
  along_columns,
  along_rows,
  awq,  ///< along columns, eight of four bits in a word in the order 0 2 4 6 1 3 5 7
};

struct PackedIntegers {
  const StoredCodes* codes = nullptr;
  unsigned bits = 8;
  bool is_signed = false;
  BitPacking packing = BitPacking::along_columns;
  std::int64_t rows = 0, columns = 0;  ///< count integers

  /// 32-bit words of a row of them, in the file: of integers along columns; else words of a row of words.
  [[nodiscard]] std::int64_t words() const;
  /// Whether the tensor has as many bytes as the integers take.
  [[nodiscard]] bool fits() const;
  [[nodiscard]] int least() const { return is_signed ? -(1 << (bits - 1)) : 0; }
  [[nodiscard]] int largest() const { return is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1; }
};

/// Reads rows one after the other, and the words of a row once.
class IntegerRows {
 public:
  IntegerRows(const TensorFile& file, const PackedIntegers& integers) : file_(file), integers_(integers) {}

  /// The integers (row, first) to (row, first + values.size()).
  void read(std::int64_t row, std::int64_t first, std::span<int> values);

 private:
  void read_along_columns(std::int64_t row, std::int64_t first, std::span<int> values);
  void read_along_rows(std::int64_t row, std::int64_t first, std::span<int> values);
  /// Words of one row of them.
  struct WordRow {
    std::int64_t at = -1;
    std::vector<std::uint32_t> words{};
  };
  void load(std::int64_t at, WordRow& row) const;
  [[nodiscard]] int number(std::uint64_t bits) const;

  const TensorFile& file_;
  const PackedIntegers& integers_;
  std::vector<std::byte> bytes_{};
  WordRow low_{}, high_{};
};

}  // namespace halfscope
