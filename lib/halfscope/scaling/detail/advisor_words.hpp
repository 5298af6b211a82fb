// The sentences of the advisor.
#pragma once

#include <halfscope/scaling/advisor.hpp>

namespace halfscope {

/// "S = 2^10 fits all 4 tensors: ..."
[[nodiscard]] std::string say_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                                         const FloatFormat& format, const AdvisorOptions& options);
/// "no single scale fits: ..." with what to do about each of `advice.outliers`.
[[nodiscard]] std::string say_no_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                                            const FloatFormat& format, const AdvisorOptions& options);
/// Of a format with the exponents of FP32, which S = 1 fits: "bf16 has the exponents of FP32: no loss scale
/// ..."
[[nodiscard]] std::string say_no_scale_needed(std::span<const TensorFit> tensors, const FloatFormat& format,
                                              const AdvisorOptions& options);
/// Of tensors without a nonzero finite value, and of none.
[[nodiscard]] std::string say_any_scale_fits(std::span<const TensorFit> tensors);

}  // namespace halfscope
