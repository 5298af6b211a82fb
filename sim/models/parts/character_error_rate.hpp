// Character error rate: the edits that turn what a network heard into what was said.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/models/model.hpp"

namespace halfscope {

/// Labels of one utterance from its logits of each frame: the likeliest of each, runs of one label once,
/// without the blank.
[[nodiscard]] std::vector<std::int32_t> greedy_labels(const std::vector<std::span<const float>>& frames);

/// Insertions, deletions and substitutions that turn `from` into `to`, as few as possible.
[[nodiscard]] std::int64_t edit_distance(std::span<const std::int32_t> from,
                                         std::span<const std::int32_t> to);

/// Character error rate of prediction 0, logits (time, batch, labels), with `stride` frames of the batch's
/// inputs to a step of time: 100 times the edits of all utterances over the number of their labels. Above 100
/// where more is heard than was said.
[[nodiscard]] std::unique_ptr<Metric> make_character_error_rate(std::int64_t stride);

}  // namespace halfscope
