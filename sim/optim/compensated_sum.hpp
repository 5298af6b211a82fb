// Sums of weights in a narrow format that remember what their rounding has lost.
#pragma once

#include <vector>

#include <halfscope/policy/policy.hpp>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// A weight and what it lacks, both numbers of the format.
struct CompensatedWeight {
  float weight = 0, rest = 0;
};

/// Kahan's sum (as torchao and optimi have it for BF16): y = u + c; w' = w + y; c' = y - (w' - w), each
/// rounded.
[[nodiscard]] CompensatedWeight kahan_sum(const CompensatedWeight& w, float update, const Quantizer& format);

/// Two components (Collage, Yu et al., 2024): Knuth's TwoSum of w and the rounded update, whose error is
/// added to the rest; then both are brought to w + rest rounded, and what that lacks.
[[nodiscard]] CompensatedWeight two_component_sum(const CompensatedWeight& w, float update,
                                                  const Quantizer& format);

/// The rests of a store's weights, each an array of its parameter's shape.
class CompensatedWeights {
 public:
  /// No rests where `sum` is plain. `store` outlives it.
  CompensatedWeights(ParameterStore& store, WeightSum sum, const Quantizer& format);

  [[nodiscard]] bool empty() const { return rests_.empty(); }
  /// Takes the rests from the weights, which are about to be rounded.
  void begin();
  /// Before an update of parameter `index` in FP32, and after it: the weights become numbers of the format.
  void before_update(std::size_t index);
  void after_update(std::size_t index);

  [[nodiscard]] std::vector<Array>& rests() { return rests_; }

 private:
  ParameterStore* store_;
  WeightSum sum_;
  Quantizer format_;
  std::vector<Array> rests_{};
  Array before_{};  ///< the parameter that is being updated, before its update
};

}  // namespace halfscope
