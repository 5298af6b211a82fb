// Names of tensors as they are printed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

/// How tensors of several files are told apart.
enum class Labels : std::uint8_t {
  with_file,  ///< "FILE:NAME" as soon as there are two files; escaped for JSON
  shortest,   ///< the name alone where no other file has it; escaped for a terminal
};

/// Names for all tensors of a command. Sees all of them before the first label, for as long as they live.
class TensorLabels {
 public:
  TensorLabels(Labels kind, std::size_t files) : kind_(kind), several_(files > 1) {}

  void see(const std::string& name, const std::string& file);
  /// `file` is empty for a group.
  [[nodiscard]] std::string of(const std::string& name, const std::string& file) const;
  /// The name of a tensor that has no other beside it.
  [[nodiscard]] std::string alone(const std::string& name) const;
  /// Gives the skipped tensors their names.
  void label(std::vector<SkippedReport>& skipped) const;

 private:
  [[nodiscard]] std::size_t folder() const;

  Labels kind_;
  bool several_;
  std::map<std::string_view, int> uses_{};
  const std::string* first_ = nullptr;  // file
  std::size_t common_ = 0;              // bytes that all files begin with
};

}  // namespace halfscope
