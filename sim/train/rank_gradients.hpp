// Gradients of a step's ranks, averaged as an all-reduce does before the step's one update.
#pragma once

#include <optional>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include "sim/parameter.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// All gradients of a store make one buffer, in the order of its parameters. It holds every rank's addends
/// in host memory, ranks times parameters of the wire's format.
class RankGradients {
 public:
  /// Of the settings' ranks.
  RankGradients(const RunSettings& settings, const ParameterStore& store);

  /// Takes the gradients of `rank`, which carry the loss scale.
  void put(std::int64_t rank, const ParameterStore& store);
  /// Gives the parameters their mean gradients, FP32 arrays on the active device, and begins anew. Returns
  /// what happened on the way.
  AllReduceCounters finish(ParameterStore& store);

 private:
  AllReduce all_reduce_;
  std::vector<float> buffer_;
};

/// Elements of all parameters of a store.
[[nodiscard]] std::int64_t parameter_elements(const ParameterStore& store);

[[nodiscard]] Json to_json(const AllReduceCounters& counters);
/// Throws as Json's accessors do where `json` is nothing that `to_json` makes.
[[nodiscard]] AllReduceCounters all_reduce_counters(const Json& json);

}  // namespace halfscope
