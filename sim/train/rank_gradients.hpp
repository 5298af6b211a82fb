// Gradients of a step's ranks, averaged as an all-reduce does before the step's one update.
#pragma once

#include <optional>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include "sim/tape/parameter.hpp"
#include "sim/train/processes.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// All gradients of a store make one buffer, in the order of its parameters. The processes of an mpirun
/// divide the ranks, and the elements: each adds up the elements of its share in the order of the model, as
/// one process would. It holds every rank's addends of its share in host memory, ranks times elements of the
/// wire's format.
class RankGradients {
 public:
  /// The settings' ranks are a multiple of the processes.
  RankGradients(const RunSettings& settings, const ParameterStore& store);

  /// Takes the gradients, which carry the loss scale, of a process's rank `own`, counted from 0. All
  /// processes call it alike.
  void put(std::int64_t own, const ParameterStore& store);
  /// Gives the parameters their mean gradients, FP32 arrays on the active device, and begins anew. Returns
  /// what happened on the way, in all processes together.
  AllReduceCounters finish(ParameterStore& store);

 private:
  /// Writes what a rank sends of one gradient.
  AllReduceCounters addends_of(const Array& gradient, std::span<std::byte> addends) const;

  AllReduceModel model_;
  DivisionSteps steps_;
  AddPlan plan_;
  std::int64_t ranks_;
  std::vector<float> buffer_;             ///< means
  std::vector<std::byte> row_;            ///< addends of one rank
  std::optional<AddendTiles> addends_{};  ///< made for the first of them
  AllReduceCounters counters_{};
};

/// The ranks of this process.
[[nodiscard]] ProcessShare own_ranks(const RunSettings& settings);

/// Throws InvalidArgument where the processes cannot train a run with these settings together.
void check_processes(const RunSettings& settings);

/// Elements of all parameters of a store.
[[nodiscard]] std::int64_t parameter_elements(const ParameterStore& store);

[[nodiscard]] Json to_json(const AllReduceCounters& counters);
/// Throws as Json's accessors do where `json` is nothing that `to_json` makes.
[[nodiscard]] AllReduceCounters all_reduce_counters(const Json& json);

}  // namespace halfscope
