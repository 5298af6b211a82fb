// The configuration that lies beside the files of a checkpoint.
#pragma once

#include <filesystem>

#include <halfscope/io/quantized_file.hpp>

namespace halfscope {

/// Settings in the config.json (`quantization_config`), quantize_config.json or hf_quant_config.json beside
/// `file`.
[[nodiscard]] StatedQuantization quantization_beside(const std::filesystem::path& file);

}  // namespace halfscope
