// Names that are printed: unique, and safe where they go.
#include <algorithm>
#include <map>

#include <halfscope/core/escape.hpp>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {
namespace {

/// How many bytes of folder all files have in common.
std::size_t common_folder(const Analysis& analysis) {
  const std::string* first = nullptr;
  std::size_t length = 0;
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    if (tensor.file.empty()) continue;
    if (first == nullptr) {
      first = &tensor.file;
      length = first->size();
    }
    const auto end = first->begin() + static_cast<std::ptrdiff_t>(std::min(length, tensor.file.size()));
    length = static_cast<std::size_t>(std::mismatch(first->begin(), end, tensor.file.begin()).first -
                                      first->begin());
  }
  const std::size_t slash =
      first == nullptr || length == 0 ? std::string::npos : first->rfind('/', length - 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

std::string with_file(const std::string& file, const std::string& name) {
  return file.empty() ? name : file + ":" + name;
}

void give_label(AnalyzedTensor& tensor, const std::string& label) {
  tensor.report.name = label;
  tensor.report.fit.name = label;
}

void label_with_files(Analysis& analysis) {
  const bool several = analysis.files > 1;
  for (AnalyzedTensor& tensor : analysis.tensors) {
    give_label(tensor, escaped_bytes(several ? with_file(tensor.file, tensor.name) : tensor.name));
  }
  for (SkippedReport& skipped : analysis.skipped) {
    skipped.name = escaped_bytes(several ? with_file(skipped.file, skipped.name) : skipped.name);
  }
}

void label_shortly(Analysis& analysis) {
  std::map<std::string_view, int> uses;
  for (const AnalyzedTensor& tensor : analysis.tensors) ++uses[tensor.name];
  const std::size_t folder = common_folder(analysis);
  for (AnalyzedTensor& tensor : analysis.tensors) {
    const bool alone = uses[tensor.name] == 1 || tensor.file.empty();
    give_label(tensor, escaped(alone ? tensor.name : with_file(tensor.file.substr(folder), tensor.name)));
  }
  for (SkippedReport& skipped : analysis.skipped) {
    skipped.name = escaped(analysis.files > 1 ? with_file(skipped.file, skipped.name) : skipped.name);
  }
}

}  // namespace

void label_tensors(Analysis& analysis, Labels labels) {
  labels == Labels::with_file ? label_with_files(analysis) : label_shortly(analysis);
  for (UpdateReport& update : analysis.updates) {
    update.name = labels == Labels::with_file ? escaped_bytes(update.name) : escaped(update.name);
  }
}

}  // namespace halfscope
