// Findings of `halfscope updates`: the request, and what each tensor of weights loses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/passes/file_updates.hpp>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

struct UpdatesRequest {
  TensorFiles updates;
  std::vector<std::string> weights;  ///< files of the tensors that the updates are added to
  FloatFormat format;                ///< as which the weights are stored
};

struct UpdateCounts {
  std::string name;
  LostUpdates counts;

  /// Lost updates as a share of the finite ones that are not zero; nothing where no update is finite.
  [[nodiscard]] std::optional<double> lost_share() const;
};

/// Counts the updates that the weights do not feel, tensor by tensor. Throws InvalidArgument where the files
/// of the two do not hold the same tensors.
[[nodiscard]] std::vector<UpdateCounts> count_updates(const UpdatesRequest& request);

/// The counts of all tensors together.
[[nodiscard]] UpdateCounts sum_of(const std::vector<UpdateCounts>& updates);

}  // namespace halfscope
