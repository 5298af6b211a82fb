// Parts of quantized tensors, found by their names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <halfscope/io/detail/block_layout.hpp>
#include <halfscope/io/detail/stored_codes.hpp>
#include <halfscope/io/quantized_file.hpp>

namespace halfscope {

/// A tensor of numbers or of codes in a file, read as numbers.
struct CodeSource {
  std::string name, type_name;
  std::vector<std::int64_t> shape;
  const CodeType* type = nullptr;      ///< type of the codes; null: tensor `index` of the file's tensors
  const StoredCodes* codes = nullptr;  ///< where there is a type
  std::size_t index = 0;
  float largest = 0;  ///< finite number of the type
  float limit = 0;    ///< half way from it to what would come next

  void read(const TensorFile& file, std::int64_t first, std::span<float> values) const;
  [[nodiscard]] std::int64_t elements() const;
};

struct QuantizedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  CodeSource payload, scales;
  std::optional<float> tensor_scale;  ///< multiplies all of it
  BlockLayout layout;
};

struct QuantizedParts {
  std::vector<QuantizedTensor> tensors;
  std::vector<std::string> consumed;  ///< names of payloads and scales
  std::vector<std::string> problems;  ///< see QuantizedFile
};

/// The source of tensor `index` of `file`.
[[nodiscard]] CodeSource source_of(const TensorFile& file, std::size_t index);
/// Codes of a type of their own; bytes of another meaning are read as `byte_type`.
[[nodiscard]] std::optional<CodeSource> source_of(const StoredCodes& codes, std::string_view byte_type = {});

/// Places of tensors, codes and skipped tensors in the lists of a file, by name; the first of each.
struct NamesOfFile {
  explicit NamesOfFile(const TensorFile& file);
  std::unordered_map<std::string_view, std::size_t> tensors{}, codes{}, skipped{};
};

/// Throws InvalidArgument, see show_quantized.
[[nodiscard]] QuantizedParts find_quantized(const TensorFile& file, const std::string& file_name,
                                            const QuantizedReading& reading);
/// Bytes that are packed FP4 or E8M0 by their name, where every part of a file is shown for itself.
[[nodiscard]] std::string_view byte_type_of(const NamesOfFile& names, const StoredCodes& codes,
                                            const FileBeside& beside);

}  // namespace halfscope
