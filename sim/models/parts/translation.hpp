// A batch of sentences with their translations, as encoders and decoders read it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/models/model.hpp"

namespace halfscope {

/// Throws InvalidArgument, naming the model, unless the examples are sentences with translations.
void check_translation(std::string_view model, const ModelSpec& spec);

/// Extents of a batch: the longest sentence of either language, with its end.
struct TranslationExtents {
  std::int64_t batch = 0, source = 0, target = 0;
};
/// Throws InvalidArgument, naming the model, for a batch without translations.
[[nodiscard]] TranslationExtents translation_extents(std::string_view model, const Batch& batch);

/// The places, in (batch, target), whose next token is one of the batch's labels, in the labels' order.
[[nodiscard]] std::vector<std::int32_t> label_places(const TranslationExtents& extents, const Batch& batch);

}  // namespace halfscope
