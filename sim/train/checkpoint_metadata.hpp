// Numbers in the metadata of a checkpoint, which anything may have happened to.
#pragma once

#include <halfscope/io/safetensors/safetensors.hpp>

namespace halfscope {

struct NumberRange {
  double low = 0, high = 0;
};

/// The number under `key`. Throws InvalidArgument where it is missing, no number or outside the range.
[[nodiscard]] double metadata_number(const SafetensorsFile& checkpoint, const std::string& key,
                                     NumberRange range);

/// As metadata_number, for a whole number of 2^53 or less, where doubles are exact.
[[nodiscard]] std::int64_t metadata_count(const SafetensorsFile& checkpoint, const std::string& key,
                                          NumberRange range = {0, 0x1p53});

}  // namespace halfscope
