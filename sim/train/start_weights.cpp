// Finds and reads the checkpoint that a run begins with or learns from.
#include "sim/train/start_weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/io/file.hpp>

#include "sim/train/checkpoint_file.hpp"

namespace halfscope {
namespace {

constexpr std::string_view arm_prefix = "arm:";

SafetensorsFile read_weights_at(const WeightsSetting& setting, const std::filesystem::path& path) {
  try {
    if (std::filesystem::exists(path)) return read_checkpoint(path);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} = {}: {}; give other weights, or train those again", setting.key,
                                      setting.value, error.what()));
  }
  throw InvalidArgument(
      fmt::format("{} = {}: there is no {}; give a run's folder, a safetensors file, or arm:NAME for an arm "
                  "of the same experiment",
                  setting.key, setting.value, printable(path)));
}

}  // namespace

std::optional<std::string> WeightsSetting::arm() const {
  if (!value.starts_with(arm_prefix)) return std::nullopt;
  return value.substr(arm_prefix.size());
}

std::vector<std::string> source_arms(const TrainConfig& config) {
  std::vector<std::string> arms;
  for (const WeightsSetting& setting : {start_of(config), teacher_of(config)}) {
    const std::optional<std::string> arm = setting.arm();
    if (arm && std::ranges::find(arms, *arm) == arms.end()) arms.push_back(*arm);
  }
  return arms;
}

SafetensorsFile read_weights(const WeightsSetting& setting) {
  const std::filesystem::path path = setting.value;
  return read_weights_at(setting,
                         std::filesystem::is_directory(path) ? path / RunFolder::checkpoint_name : path);
}

SafetensorsFile read_weights(const WeightsSetting& setting, const RunFolder& folder) {
  const auto arm = setting.arm();
  return arm ? read_weights_at(setting, folder.of_arm(*arm).checkpoint_path()) : read_weights(setting);
}

RunSettings with_teacher(RunSettings settings, const RunFolder* folder) {
  const WeightsSetting teacher = teacher_of(settings.config);
  if (teacher.value.empty() || (folder == nullptr && teacher.arm())) return settings;
  settings.teacher = std::make_shared<const SafetensorsFile>(
      folder != nullptr ? read_weights(teacher, *folder) : read_weights(teacher));
  return settings;
}

}  // namespace halfscope
