// Matches weights with their updates and counts the updates that are lost.
#include <fmt/format.h>

#include <halfscope/core/escape.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/tensors/tensor_lookup.hpp"

namespace halfscope {
namespace {

/// Throws where a tensor of `tensors` is not among `others`.
void require_all(const TensorLookup& tensors, TensorLookup& others) {
  for (const TensorInFile& place : tensors.tensors()) {
    const std::string& name = place.tensor().name;
    if (others.find(name)) continue;
    throw InvalidArgument(
        fmt::format("{} has no tensor '{}', which {} has; give weights and updates the same "
                    "names, or leave some out with --include and --exclude",
                    others.files(), escaped(name), place.file_name));
  }
}

}  // namespace

std::vector<UpdateReport> analyze_updates(const AnalyzeRequest& request) {
  TensorLookup weights(request.weights, request.input.selection);
  TensorLookup updates(request.updates, request.input.selection);
  // Two files of one array each need no common name.
  const bool one_each = weights.is_single_array() && updates.is_single_array();
  if (!one_each) {
    require_all(updates, weights);
    require_all(weights, updates);
  }
  std::vector<UpdateReport> reports;
  for (const TensorInFile& update : updates.tensors()) {
    const TensorInFile weight = one_each ? weights.front() : *weights.find(update.tensor().name);
    reports.push_back({update.tensor().name, count_lost_updates(weight, update, request.format)});
  }
  return reports;
}

}  // namespace halfscope
