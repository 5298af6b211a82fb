// The configuration that lies beside the files of a checkpoint.
#pragma once

#include <filesystem>
#include <optional>

#include <halfscope/io/quantized_file.hpp>

namespace halfscope {

/// `quantization_config.weight_block_size` of the config.json beside `file`; nothing without one.
[[nodiscard]] std::optional<WeightBlock> weight_block_beside(const std::filesystem::path& file);

}  // namespace halfscope
