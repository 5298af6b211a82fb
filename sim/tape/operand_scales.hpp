// Delayed scales of operands by name, which are state of a run.
#pragma once

#include <map>
#include <string>

#include <halfscope/device/array.hpp>
#include <halfscope/policy/operand_scale.hpp>

namespace halfscope {

/// Largest magnitude that a step has seen of an operand with a delayed scale.
struct OperandMaximum {
  float amax = 0;     ///< NaNs left out
  float largest = 0;  ///< largest number of its format
  DelayedScaling options{};
};
/// By "LAYER.PRODUCT.SIDE".
using OperandMaxima = std::map<std::string, OperandMaximum>;

/// The delayed scales of a run.
class OperandScales {
 public:
  /// 1 of an operand that no step has seen.
  [[nodiscard]] float scale(const std::string& operand) const;
  void update(const OperandMaxima& step);
  /// Whether no step has seen an operand.
  [[nodiscard]] bool empty() const { return scales_.empty(); }

  /// For a checkpoint: of each operand (1 + history) floats, its scale first.
  [[nodiscard]] std::map<std::string, Array> state() const;
  /// Throws InvalidArgument for an array that is none of these.
  void restore(const std::string& operand, const Array& state);

 private:
  std::map<std::string, DelayedScale> scales_{};
};

}  // namespace halfscope
