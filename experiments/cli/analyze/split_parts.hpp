// Quantized tensors whose payload and scales lie in two of the files that are given.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/io/tensor_file.hpp>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {

/// Puts parts together by their names. Files are looked into once one of them holds a part without the other.
class SplitParts {
 public:
  SplitParts(std::vector<std::string> paths, const TensorSelection& selection)
      : paths_(std::move(paths)), selection_(selection) {}

  /// `file`, which is that of `path`, with the scales that its payloads lack, and without those that it has
  /// for payloads of other files. Throws InvalidArgument where such a file cannot be read.
  [[nodiscard]] std::unique_ptr<TensorFile> complete(std::unique_ptr<TensorFile> file,
                                                     const std::string& path);

 private:
  /// The file, other than that of `path`, that has the name; null where none has.
  std::shared_ptr<const TensorFile> other_with(const std::string& name, const std::string& path);

  std::vector<std::string> paths_;
  const TensorSelection& selection_;
  std::optional<std::map<std::string, std::string>> path_of_name_{};
  std::map<std::string, std::weak_ptr<const TensorFile>> open_{};  ///< by path
};

}  // namespace halfscope
