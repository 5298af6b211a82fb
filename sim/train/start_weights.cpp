// Finds and reads the checkpoint that a run begins with.
#include "sim/train/start_weights.hpp"

#include <fmt/format.h>

#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

constexpr std::string_view arm_prefix = "arm:";

SafetensorsFile read_checkpoint(const std::string& start_from, const std::filesystem::path& path) {
  try {
    if (std::filesystem::exists(path)) return read_safetensors(path);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("start_from = {}: {}", start_from, error.what()));
  }
  throw InvalidArgument(
      fmt::format("start_from = {}: there is no {}; give a run's folder, a safetensors file, or arm:NAME for "
                  "an arm of the same experiment",
                  start_from, printable(path)));
}

}  // namespace

std::optional<std::string> start_arm(std::string_view start_from) {
  if (!start_from.starts_with(arm_prefix)) return std::nullopt;
  return std::string(start_from.substr(arm_prefix.size()));
}

SafetensorsFile read_start(const std::string& start_from) {
  const std::filesystem::path path = start_from;
  return read_checkpoint(start_from,
                         std::filesystem::is_directory(path) ? path / RunFolder::checkpoint_name : path);
}

SafetensorsFile read_start(const std::string& start_from, const RunFolder& folder) {
  const auto arm = start_arm(start_from);
  return arm ? read_checkpoint(start_from, folder.of_arm(*arm).checkpoint_path()) : read_start(start_from);
}

}  // namespace halfscope
