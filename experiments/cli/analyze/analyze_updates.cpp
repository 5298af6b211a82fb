// Matches weights with their updates and counts the updates that are lost.
#include <fmt/format.h>

#include <map>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {
namespace {

using Indices = std::map<std::string, std::size_t, std::less<>>;

Indices indices_of(const SelectedFile& file) {
  Indices indices;
  for (const std::size_t index : file.tensors) indices.emplace(file.file->tensors()[index].name, index);
  return indices;
}

/// Throws where a tensor of `file` is not in `other`, whose tensors are `others`.
void require_all(const SelectedFile& file, const SelectedFile& other, const Indices& others) {
  for (const std::size_t index : file.tensors) {
    const std::string& name = file.file->tensors()[index].name;
    if (others.contains(name)) continue;
    throw InvalidArgument(
        fmt::format("{} has no tensor '{}', which {} has; give weights and updates the same "
                    "names, or leave some out with --include and --exclude",
                    other.name, name, file.name));
  }
}

}  // namespace

std::vector<UpdateReport> analyze_updates(const AnalyzeRequest& request) {
  const SelectedFile weights = select_tensors(request.weights, request.selection);
  const SelectedFile updates = select_tensors(request.updates, request.selection);
  const Indices of_weights = indices_of(weights);
  // Two files of one array each need no common name.
  const bool one_each = weights.file->tensors().size() == 1 && updates.file->tensors().size() == 1;
  if (!one_each) {
    require_all(updates, weights, of_weights);
    require_all(weights, updates, indices_of(updates));
  }
  std::vector<UpdateReport> reports;
  for (const std::size_t index : updates.tensors) {
    const std::string& name = updates.file->tensors()[index].name;
    const std::size_t of_weight = one_each ? 0 : of_weights.at(name);
    reports.push_back(
        {name, count_lost_updates({*weights.file, of_weight}, {*updates.file, index}, request.format)});
  }
  return reports;
}

}  // namespace halfscope
