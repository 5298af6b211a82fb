// Scales of tensors whose layers a runtime fuses into one product.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <halfscope/io/block_findings.hpp>

namespace halfscope {

/// A sentence for each kind of layers that a runtime fuses and that have different scales of their tensors.
[[nodiscard]] std::vector<std::string> fused_sentences(std::span<const NamedFindings> tensors);
/// FP8 under a scale for each tensor: a runtime that fuses layers can quantize again, at a second rounding.
[[nodiscard]] std::vector<std::string> single_scale_notes(std::span<const NamedFindings> tensors);

}  // namespace halfscope
