// Memory that a training step needs: elements by layer, bytes by role under a policy. Nothing is trained for
// it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/policy/policy.hpp>

#include "sim/data/dataset.hpp"
#include "sim/models/model.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

/// Elements of an operation: of the parameters that it is the first to use, and of its output for a batch.
struct LayerElements {
  std::string name;
  OperationKind kind = OperationKind::other;
  std::int64_t parameters = 0;
  std::int64_t reduced_parameters = 0;  ///< parameters that it is the first to use in the weights' format
  std::int64_t outputs = 0;
  Precision precision = Precision::reduced;  ///< precision of the output
  std::size_t loss = 0;                      ///< loss of the step in whose forward pass it is
  /// From 1, of an output that is there with those of its segment alone; 0: it is kept.
  std::size_t segment = 0;
};

struct NetworkElements {
  std::vector<LayerElements> layers;  ///< in the order of the forward pass
  std::int64_t statistics = 0;        ///< running ones, of batch norm

  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t reduced_parameters() const;
};

struct StepSize {
  std::int64_t batch = 1;     ///< examples
  PrecisionPolicy policy{};   ///< whose lists of operations add casts and say what is FP32
  std::int64_t segments = 0;  ///< segments of a chain of blocks, all but the last of them checkpoints
};
/// Counted in forward passes of one and of two examples, whose difference is an example's share. `make_batch`
/// makes a batch of so many examples. Throws InvalidArgument as the model does.
[[nodiscard]] NetworkElements count_elements(const Model& model,
                                             const std::function<Batch(std::int64_t)>& make_batch,
                                             const StepSize& size);

/// Outputs that are kept from the forward pass for the backward pass.
enum class KeptOutputs : std::uint8_t {
  all,           ///< outputs of every operation, as the tape keeps them
  feature_maps,  ///< outputs of convolutions and residual sums: norms, ReLUs and pools work in place, as
                 ///< published counts have it
};
template <>
inline constexpr std::array<std::string_view, 2> enum_names<KeptOutputs>{"all", "feature_maps"};

[[nodiscard]] bool is_kept(OperationKind kind, KeptOutputs kept);

/// A row of the account. `bytes` is the elements times those of the smallest memory that holds the format: 1,
/// 2 or 4 each.
struct MemoryItem {
  std::string name;  ///< a role, "running_statistics" or "gradient_sum"
  std::string format;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

struct MemoryOptions {
  PrecisionPolicy policy{};  ///< under which the elements were counted, or one without lists of operations
  std::int64_t states_per_parameter = 0;  ///< the optimizer's numbers per parameter
  KeptOutputs kept = KeptOutputs::all;
  std::optional<FloatFormat> gradient_sum{};  ///< sums the gradients of micro-batches; empty without any
};

/// Weights, the master copy where its format is another (under autocast: the FP32 weights, beside the copies
/// that the cast cache keeps), running statistics, weight gradients and their sum over micro-batches,
/// optimizer state, kept activations, beside those of the largest segment where some are dropped, of several
/// losses those of the one that keeps most, since one follows the other, and of the activation gradients
/// those of the two consecutive outputs that are largest together: a backward pass holds no fewer at a time.
[[nodiscard]] std::vector<MemoryItem> memory_of(const NetworkElements& network, const MemoryOptions& options);

[[nodiscard]] std::int64_t total_bytes(const std::vector<MemoryItem>& items);

}  // namespace halfscope
