// Checks and orders tokens.
#include "sim/models/parts/texts.hpp"

#include <fmt/format.h>

namespace halfscope {

void check_text(std::string_view model, const ModelSpec& spec) {
  if (spec.example_shape.size() != 1) {
    throw InvalidArgument(
        fmt::format("model {} learns texts: examples are (time), not {}; choose a data set of words", model,
                    to_string(spec.example_shape)));
  }
  if (spec.text_labels == TextLabels::next_words) return;
  throw InvalidArgument(
      fmt::format("model {} learns the word behind each word: choose the data set kjv_text", model));
}

std::vector<std::int32_t> time_major(const std::vector<std::int32_t>& values, std::size_t time) {
  const std::size_t batch = values.size() / time;
  std::vector<std::int32_t> result(values.size());
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t t = 0; t < time; ++t) result[t * batch + b] = values[b * time + t];
  }
  return result;
}

}  // namespace halfscope
