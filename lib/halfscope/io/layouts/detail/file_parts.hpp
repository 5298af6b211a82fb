// Parts of quantized tensors in a file: looked up by name, taken by the layout that knows them.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/layouts/detail/code_source.hpp>
#include <halfscope/io/layouts/detail/quantized_tensor.hpp>
#include <halfscope/io/quantized_file.hpp>

namespace halfscope {

class FileParts {
 public:
  FileParts(const TensorFile& file, const std::string& file_name, const QuantizedReading& reading);

  [[nodiscard]] const TensorFile& file() const { return file_; }
  [[nodiscard]] const QuantizedReading& reading() const { return reading_; }

  /// A tensor that no layout has taken; bytes are read as `byte_type`, where they have one.
  [[nodiscard]] std::optional<CodeSource> find(const std::string& name,
                                               std::string_view byte_type = {}) const;
  /// Numbers of a floating-point type alone.
  [[nodiscard]] std::optional<CodeSource> find_numbers(const std::string& name) const;
  /// Codes or integers that no layout has taken, of that type where one is given.
  [[nodiscard]] const StoredCodes* find_codes(const std::string& name, std::string_view type = {}) const;
  [[nodiscard]] bool holds(const std::string& name) const;
  /// Whether a tensor is of FP8, of fewer bits or of bytes, taken or not.
  [[nodiscard]] bool has_codes(const std::string& name) const;
  /// Whether a tensor is in the file, of a type that is not read.
  [[nodiscard]] bool is_skipped(const std::string& name) const { return names_.skipped.contains(name); }
  [[nodiscard]] bool is_taken(const std::string& name) const { return taken_.contains(name); }
  static constexpr std::size_t most_names = 1000;
  /// Names that begin so, in order, those taken too; no more than `most_names`.
  [[nodiscard]] std::vector<std::string> names_with(const std::string& prefix) const;

  /// Where a part lies that the file lacks beside `partner`, and what to do: "not in the file; give ...".
  [[nodiscard]] std::string place_of(const std::string& missing, const std::string& partner) const;
  /// The largest magnitude of a small tensor.
  [[nodiscard]] float largest_of(const CodeSource& source) const;
  /// Whether all bytes of a tensor of codes are zero.
  [[nodiscard]] bool is_all_zero(const StoredCodes& codes) const;

  void take(const std::string& name) { taken_.insert(name); }
  void add(std::unique_ptr<QuantizedTensor> tensor) { tensors_.push_back(std::move(tensor)); }
  /// Leaves a tensor out with a line that says why.
  void refuse(const std::string& name, const std::string& why);
  /// Says that a tensor is quantized and not read, which its file's own list of skipped ones tells.
  void leave(const std::string& name) { unread_.push_back(name); }
  /// A line about a tensor that is read all the same.
  void note(const std::string& name, const std::string& line);

  /// Gives back the memory of the names, once all layouts have looked.
  void forget_names();
  [[nodiscard]] const std::set<std::string>& taken() const { return taken_; }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] const std::vector<std::string>& unread() const { return unread_; }
  [[nodiscard]] const std::vector<std::unique_ptr<QuantizedTensor>>& tensors() const { return tensors_; }
  /// Leaves out a tensor that was read, with a line that says why.
  void take_back(std::size_t index, const std::string& why);

 private:
  const TensorFile& file_;
  const std::string& file_name_;
  const QuantizedReading& reading_;
  NamesOfFile names_;
  mutable std::vector<std::string_view> sorted_{};  // all names, once they are asked for by prefix
  std::set<std::string> taken_{};
  std::vector<std::string> problems_{}, unread_{};
  std::vector<std::unique_ptr<QuantizedTensor>> tensors_{};
};

/// `name` without `suffix`; nothing where it has another end.
[[nodiscard]] std::optional<std::string> without_ending(std::string_view name, std::string_view suffix);

}  // namespace halfscope
