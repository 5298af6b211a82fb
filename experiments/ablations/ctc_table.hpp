// CTC with FP16 path likelihoods against the length of an utterance.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// 56 to 800 frames, four utterances each, 29 labels, normal logits that hardly differ or differ much (their
/// deviation is 0.1 or 3), from the same random bits every time: CTC with alpha and beta in FP16 beside FP32.
[[nodiscard]] std::vector<CtcPrecisionRow> ctc_precision_table();

}  // namespace halfscope
