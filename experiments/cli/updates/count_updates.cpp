// Matches weights with their updates and counts the updates that are lost.
#include <fmt/format.h>

#include <halfscope/core/escape.hpp>

#include "experiments/cli/tensors/tensor_lookup.hpp"
#include "experiments/cli/updates/updates.hpp"

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

std::optional<double> UpdateCounts::lost_share() const {
  if (counts.elements == counts.nonfinite) return std::nullopt;
  const std::int64_t finite = counts.nonzero - counts.nonfinite;
  return finite == 0 ? 0 : static_cast<double>(counts.lost) / static_cast<double>(finite);
}

std::vector<UpdateCounts> count_updates(const UpdatesRequest& request) {
  TensorLookup weights(request.weights, request.updates.selection);
  TensorLookup updates(request.updates.paths, request.updates.selection);
  // Two files of one array each need no common name.
  const bool one_each = weights.is_single_array() && updates.is_single_array();
  if (!one_each) {
    require_all(updates, weights);
    require_all(weights, updates);
  }
  std::vector<UpdateCounts> counted;
  for (const TensorInFile& update : updates.tensors()) {
    const TensorInFile weight = one_each ? weights.front() : *weights.find(update.tensor().name);
    counted.push_back({update.tensor().name, count_lost_updates(weight, update, request.format)});
  }
  return counted;
}

UpdateCounts sum_of(const std::vector<UpdateCounts>& updates) {
  UpdateCounts sum;
  for (const UpdateCounts& update : updates) {
    sum.counts.elements += update.counts.elements;
    sum.counts.nonzero += update.counts.nonzero;
    sum.counts.nonfinite += update.counts.nonfinite;
    sum.counts.lost += update.counts.lost;
  }
  return sum;
}

}  // namespace halfscope
