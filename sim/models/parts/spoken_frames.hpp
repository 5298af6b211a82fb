// Frames of a batch of utterances without their padding, for models of speech.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// Steps or frequencies that are left of so many at a stride; a kernel's border keeps all of them.
[[nodiscard]] constexpr std::int64_t left_of(std::int64_t count, std::int64_t stride) {
  return (count + stride - 1) / stride;
}

/// Utterances of a batch in steps of time, of which each has its own number.
struct Lengths {
  std::int64_t time = 0;
  std::vector<std::int32_t> steps;

  [[nodiscard]] std::int64_t batch() const { return std::ssize(steps); }
  [[nodiscard]] std::int64_t of(std::int64_t b) const { return steps[static_cast<std::size_t>(b)]; }
};

/// Lengths of the batch's utterances, `stride` frames to a step. Throws InvalidArgument, which names the
/// model, where the batch is no speech.
[[nodiscard]] Lengths lengths_of(const std::string& model, const Batch& batch, std::int64_t stride);

/// Throws InvalidArgument where the model's examples are no speech.
void check_speech(const std::string& model, const ModelSpec& spec);

/// Whether a row of a sequence is a time of all utterances or an utterance with all its times.
enum class OuterAxis : bool { time, batch };

/// Row numbers row(t, b) for each step t of each utterance b, none for padding.
template <typename Row>
std::vector<std::int32_t> spoken_rows(const Lengths& lengths, OuterAxis outer_axis, const Row& row) {
  std::vector<std::int32_t> rows;
  const bool time_first = outer_axis == OuterAxis::time;
  const std::int64_t outer = time_first ? lengths.time : lengths.batch(),
                     inner = time_first ? lengths.batch() : lengths.time;
  for (std::int64_t i = 0; i < outer * inner; ++i) {
    const std::int64_t t = time_first ? i / inner : i % inner, b = time_first ? i % inner : i / inner;
    rows.push_back(t < lengths.of(b) ? static_cast<std::int32_t>(row(t, b)) : no_row);
  }
  return rows;
}

}  // namespace halfscope
