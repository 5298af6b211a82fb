// Checks and measures batches of translations.
#include "sim/models/parts/translation.hpp"

#include <fmt/format.h>

namespace halfscope {

void check_translation(std::string_view model, const ModelSpec& spec) {
  if (spec.example_shape.size() == 2 && spec.token_count > 0) return;
  throw InvalidArgument(
      fmt::format("model {} learns translations: examples are (source, target), not {}; choose a data set of "
                  "sentence pairs",
                  model, to_string(spec.example_shape)));
}

TranslationExtents translation_extents(std::string_view model, const Batch& batch) {
  const std::size_t examples = batch.lengths.size();
  if (examples == 0 || batch.decoder_tokens.empty() || batch.label_counts.size() != examples) {
    throw InvalidArgument(
        fmt::format("model {} learns translations: choose a data set of sentence pairs", model));
  }
  return {static_cast<std::int64_t>(examples), static_cast<std::int64_t>(batch.tokens.size() / examples),
          static_cast<std::int64_t>(batch.decoder_tokens.size() / examples)};
}

std::vector<std::int32_t> label_places(const TranslationExtents& extents, const Batch& batch) {
  std::vector<std::int32_t> places;
  places.reserve(batch.labels.size());
  for (std::size_t b = 0; b < batch.label_counts.size(); ++b)
    for (std::int32_t t = 0; t < batch.label_counts[b]; ++t)
      places.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(b) * extents.target) + t);
  return places;
}

}  // namespace halfscope
