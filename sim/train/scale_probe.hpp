// Probes: the weight gradients of a step at other loss scales, against FP32's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/fp32_reference.hpp"

namespace halfscope {

/// Weight gradients of one step at one loss scale, compared with FP32's from the same weights and batch.
struct ScaleProbe {
  double scale = 1;
  std::vector<Fp32Comparison> weight_gradients;

  /// The median over the tensors of their relative error. Infinite where a gradient is not finite; empty
  /// where FP32's are all zero.
  [[nodiscard]] std::optional<double> error() const;
};
/// "error" is null where it is infinite or empty; "finite" tells which.
[[nodiscard]] Json to_json(const ScaleProbe& probe);

/// Positive numbers of FP32's range, separated by commas, each as a number or as 2^K. None in an empty text.
/// Throws InvalidArgument.
[[nodiscard]] std::vector<double> parse_scales(std::string_view text);

/// Settings of a run's probes.
struct ProbeOptions {
  std::vector<double> scales;
  PrecisionPolicy policy;
};

/// One backward pass in FP32 and one under the options' policy for each scale.
[[nodiscard]] std::vector<ScaleProbe> probe_scales(const ProbeOptions& options, std::uint64_t seed,
                                                   const StepContext& context, const RepeatStep& repeat);

}  // namespace halfscope
