// Recordings in the WAVE format: 16-bit PCM of one channel.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope {

struct Recording {
  std::int64_t rate = 0;       ///< samples per second
  std::vector<float> samples;  ///< within [-1, 1)
};

/// Whether samples end where the header says. A program that writes to a pipe cannot know it beforehand.
enum class SampleCount : std::uint8_t { as_declared, to_the_end };

/// Reads the bytes of a file; `source` names it in messages. Throws InvalidArgument for what is no WAVE file,
/// one that is cut off, and for samples that are not 16-bit PCM of one channel.
[[nodiscard]] Recording parse_wav(std::string_view bytes, std::string_view source,
                                  SampleCount count = SampleCount::as_declared);

}  // namespace halfscope
