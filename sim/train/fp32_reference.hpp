// The FP32 reference: a step computed again in FP32, and how far the run's own tensors are from it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>

#include "sim/tape/cast.hpp"

namespace halfscope {

/// ||x - x32|| / ||x32|| and the cosine of the angle between x and x32, over all elements of a tensor, x
/// without its loss scale. Empty where x32 is zero, or where either holds an infinity or a NaN.
struct Fp32Comparison {
  std::string tensor;
  Role role{};
  std::optional<double> relative_error;
  std::optional<double> cosine;
  bool finite = true;  ///< neither x nor x32 holds an infinity or a NaN
};
[[nodiscard]] Json to_json(const Fp32Comparison& record);

/// Runs a step's forward and backward under `caster`, at its loss scale.
using RepeatStep = std::function<void(Caster& caster, double loss_scale)>;

/// A step in FP32 at scale 1, which the same step under other policies and scales is compared with.
class Fp32Reference {
 public:
  /// Runs the step and keeps its tensors of `roles`.
  Fp32Reference(RoleSet roles, std::uint64_t seed, std::int64_t step, const RepeatStep& repeat);
  /// The step once more under `policy` at `context`'s loss scale, in the order of execution.
  [[nodiscard]] std::vector<Fp32Comparison> compare(const PrecisionPolicy& policy, const StepContext& context,
                                                    const RepeatStep& repeat) const;

 private:
  /// A tensor that is cast several times in a step, since gradients are added to it, counts by its last cast.
  using TensorKey = std::pair<std::string, Role>;
  using PartIndex = std::pair<std::int32_t, std::int32_t>;  ///< micro-batch, and part of the tensor
  using PartKey = std::pair<TensorKey, PartIndex>;
  class Keeper;
  class Comparer;
  static PartKey key_of(const Site& site);

  RoleSet roles_;
  std::uint64_t seed_;
  std::map<PartKey, std::vector<float>> exact_;
};

/// Activations and both kinds of gradients under `policy` at `context`'s loss scale, compared with FP32 at
/// scale 1, in the order of execution. Both computations start from the same master weights and batch: what
/// is seen is the rounding of this step alone, not how far two trainings have drifted apart.
[[nodiscard]] std::vector<Fp32Comparison> compare_with_fp32(const PrecisionPolicy& policy, std::uint64_t seed,
                                                            const StepContext& context,
                                                            const RepeatStep& repeat);

}  // namespace halfscope
