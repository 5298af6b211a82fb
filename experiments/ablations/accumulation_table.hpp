// Sums and dot products of FP16 numbers under every accumulation model, against their length.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Four kinds of terms, K = 256 to 65536, every accumulation model that has a name and can add them up: dot
/// products of normal numbers (signed: the error is relative to the sum of |a b|, since the sum itself is
/// near zero), dot products of uniform numbers on [0, 1), sums of those, and sums of numbers near 8.3
/// (per-word losses, say). 32 sums each, from the same random bits every time; exact values are sums in
/// double of exact products.
[[nodiscard]] std::vector<AccumulationRow> accumulation_table();

}  // namespace halfscope
