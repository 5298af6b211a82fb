// Writes event files of TensorBoard, after the description of their records and messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope {

/// A message with its length and both checksums.
[[nodiscard]] std::string event_record(std::string_view message);
/// The first record of every event file.
[[nodiscard]] std::string event_file_head();
/// A record with one scalar, as TensorFlow 1 and PyTorch write it (simple_value).
[[nodiscard]] std::string scalar_record(std::int64_t step, std::string_view tag, float value);
/// The same as a tensor, as TensorFlow 2 and JAX write it.
[[nodiscard]] std::string tensor_record(std::int64_t step, std::string_view tag, float value);

}  // namespace halfscope
