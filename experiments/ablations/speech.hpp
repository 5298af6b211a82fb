// Settings that the speech experiments share.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Deep Speech 2 on spoken digits at a learning rate so small that most updates are below half an ulp of
/// their weight: SGD with momentum, 5e-5, 1600 steps.
[[nodiscard]] Settings slow_speech_settings();
/// What differs at a normal rate: Adam, 2e-3, 300 steps.
[[nodiscard]] Settings normal_speech_settings();

/// Character error rate of the test utterances.
[[nodiscard]] ReportedMetric test_character_error_rate();

}  // namespace halfscope
