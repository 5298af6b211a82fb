// Codes of few bits as files hold them, and the numbers that they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// A type of codes; the names are those of safetensors.
struct CodeType {
  std::string_view name;
  unsigned bits;  ///< bits of a code
  float largest;  ///< finite number
  float limit;    ///< half way from it to what would come next: beyond it a value is clipped
  float (*decode)(std::uint32_t code);
};

/// Nothing for bytes without a meaning of their own (U8), and for types that `TensorFile::read` reads.
[[nodiscard]] const CodeType* find_code_type(std::string_view name);

/// The numbers of codes [first, first + values.size()) of `tensor` in `file`. The first code is in the lowest
/// bits, so that packed FP4 has element 2i in the low nibble of byte i.
void read_codes(const TensorFile& file, const StoredCodes& tensor, const CodeType& type, std::int64_t first,
                std::span<float> values);

}  // namespace halfscope
