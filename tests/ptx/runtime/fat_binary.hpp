// PTX texts in a fat binary, as nvcc embeds it in a program.
#pragma once

#include <string>
#include <vector>

namespace halfscope::ptx {

struct EmbeddedText {
  int target = 0;  ///< 80 of sm_80
  std::string text;
};

/// The texts in the fat binary that `wrapper` points to, the argument of __cudaRegisterFatBinary. Throws
/// ParseError where it is no fat binary, or its texts are compressed otherwise than by Zstandard.
[[nodiscard]] std::vector<EmbeddedText> embedded_texts(const void* wrapper);

}  // namespace halfscope::ptx
