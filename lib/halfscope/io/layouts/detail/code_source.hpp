// Tensors of codes in a file, read as numbers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <halfscope/io/detail/stored_codes.hpp>
#include <halfscope/io/tensor_file.hpp>

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

/// Product of the extents.
[[nodiscard]] std::int64_t elements_of_shape(const std::vector<std::int64_t>& shape);

/// The source of tensor `index` of `file`.
[[nodiscard]] CodeSource source_of(const TensorFile& file, std::size_t index);
/// Codes of a type of their own; bytes of another meaning are read as `byte_type`.
[[nodiscard]] std::optional<CodeSource> source_of(const StoredCodes& codes, std::string_view byte_type = {});

/// Places of tensors, codes and skipped tensors in the lists of a file, by name; the first of each.
struct NamesOfFile {
  explicit NamesOfFile(const TensorFile& file);
  std::unordered_map<std::string_view, std::size_t> tensors{}, codes{}, skipped{};
};

}  // namespace halfscope
