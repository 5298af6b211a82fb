// Checks and counts frames.
#include "sim/models/parts/spoken_frames.hpp"

#include <halfscope/core/error.hpp>

namespace halfscope {

Lengths lengths_of(const std::string& model, const Batch& batch, std::int64_t stride) {
  const bool features = batch.inputs.shape().size() == 3;  // sentences have lengths too, but no features
  const auto utterances = static_cast<std::size_t>(features ? batch.inputs.extent(0) : -1);
  if (batch.lengths.size() != utterances || batch.label_counts.size() != utterances)
    throw InvalidArgument("model " + model + " learns speech: choose a data set of utterances");
  Lengths lengths{left_of(batch.inputs.extent(1), stride), batch.lengths};
  for (std::int32_t& steps : lengths.steps) steps = static_cast<std::int32_t>(left_of(steps, stride));
  return lengths;
}

void check_speech(const std::string& model, const ModelSpec& spec) {
  if (spec.example_shape.size() == 2) return;
  throw InvalidArgument("model " + model + " learns speech: examples are (time, feature), not " +
                        to_string(spec.example_shape) + "; choose a data set of utterances");
}

}  // namespace halfscope
