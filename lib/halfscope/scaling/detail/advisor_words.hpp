// Verdicts of the advisor, as lines: the scale to type, why, how sure.
#pragma once

#include <halfscope/scaling/advisor.hpp>

namespace halfscope {

/// "Loss scale 2^10: torch.amp.GradScaler(init_scale=2.0**10)", and why.
[[nodiscard]] std::string say_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                                         const FloatFormat& format, const AdvisorOptions& options);
/// "Loss scale 2^10 suits 3 of 4 tensors; no single scale fits all:", a remedy per kind of `advice.outliers`,
/// and why.
[[nodiscard]] std::string say_no_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                                            const FloatFormat& format, const AdvisorOptions& options);
/// "No loss scale is needed: bf16 has the exponents of FP32", for a format that S = 1 fits, and why.
[[nodiscard]] std::string say_no_scale_needed(std::span<const TensorFit> tensors, const FloatFormat& format,
                                              const AdvisorOptions& options);
/// "Any loss scale fits: ...", for tensors without a nonzero finite value, and for none.
[[nodiscard]] std::string say_any_scale_fits(std::span<const TensorFit> tensors);

}  // namespace halfscope
