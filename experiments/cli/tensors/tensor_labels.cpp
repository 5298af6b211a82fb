// Names that are printed: unique, and safe where they go.
#include "experiments/cli/tensors/tensor_labels.hpp"

#include <algorithm>

#include <halfscope/core/escape.hpp>

namespace halfscope {
namespace {

std::string with_file(const std::string& file, const std::string& name) {
  return file.empty() ? name : file + ":" + name;
}

}  // namespace

void TensorLabels::see(const std::string& name, const std::string& file) {
  if (kind_ == Labels::with_file) return;
  ++uses_[name];
  if (file.empty()) return;
  if (first_ == nullptr) {
    first_ = &file;
    common_ = file.size();
  }
  const auto end = first_->begin() + static_cast<std::ptrdiff_t>(std::min(common_, file.size()));
  common_ =
      static_cast<std::size_t>(std::mismatch(first_->begin(), end, file.begin()).first - first_->begin());
}

/// How many bytes of folder all files have in common.
std::size_t TensorLabels::folder() const {
  const std::size_t slash =
      first_ == nullptr || common_ == 0 ? std::string::npos : first_->rfind('/', common_ - 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

std::string TensorLabels::of(const std::string& name, const std::string& file) const {
  if (kind_ == Labels::with_file) return escaped_bytes(several_ ? with_file(file, name) : name);
  const bool is_alone = file.empty() || uses_.at(name) == 1;
  return escaped(is_alone ? name : with_file(file.substr(folder()), name));
}

std::string TensorLabels::alone(const std::string& name) const {
  return kind_ == Labels::with_file ? escaped_bytes(name) : escaped(name);
}

void TensorLabels::label(std::vector<SkippedReport>& skipped) const {
  for (SkippedReport& tensor : skipped)
    tensor.name = alone(several_ ? with_file(tensor.file, tensor.name) : tensor.name);
}

}  // namespace halfscope
