// Tensors of several files by their names: shards of weights, of updates, of reference tensors.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/passes/file_comparison.hpp>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

class TensorLookup {
 public:
  /// Opens the files of `words`, see expand_paths. Throws InvalidArgument where one cannot be read, where no
  /// tensor is asked for, and where two files have a tensor of one name.
  TensorLookup(const std::vector<std::string>& words, const TensorSelection& selection);

  /// Whether it is one file of one array, as .npy is: its name says nothing.
  [[nodiscard]] bool is_single_array() const {
    return files_.size() == 1 && files_.front().file->tensors().size() == 1;
  }
  /// The first tensor.
  [[nodiscard]] TensorInFile front() {
    used_ = true;
    return at(places_.front());
  }
  /// All of them, in the order of the files.
  [[nodiscard]] std::vector<TensorInFile> tensors() const;
  /// The tensor of that name.
  [[nodiscard]] std::optional<TensorInFile> find(const std::string& name);
  /// Throws InvalidArgument where `find` has found nothing at all.
  void require_used() const;
  /// The files, for messages: the first, and how many there are besides.
  [[nodiscard]] std::string files() const;

 private:
  struct Place {
    std::size_t file = 0, index = 0;
  };
  [[nodiscard]] TensorInFile at(const Place& place) const;

  std::vector<SelectedFile> files_;
  std::vector<Place> places_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  ///< index into places_
  bool used_ = false;
};

}  // namespace halfscope
