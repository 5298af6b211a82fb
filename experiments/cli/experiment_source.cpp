// Looks experiments up in the table, in files and in folders of results.
#include "experiments/cli/experiment_source.hpp"

#include <halfscope/io/file.hpp>

#include "experiments/cli/experiment_table.hpp"
#include "experiments/definition/experiment_file.hpp"
#include "experiments/definition/own_arms.hpp"

namespace halfscope {
namespace {

/// Whether a definition may compare with it: an arm of the experiment or of its base.
bool is_comparable(const Experiment& experiment, const std::string& arm) {
  const Experiment* base = built_in(experiment.base);
  return experiment.has_arm(arm) || (base != nullptr && base->has_arm(arm));
}

}  // namespace

Experiment find_experiment(const std::string& name_or_file) {
  if (name_or_file.ends_with(".toml")) return read_experiment_file(name_or_file, known_names());
  return built_in_experiment(name_or_file);
}

Experiment with_arms(Experiment experiment, const std::vector<std::string>& arms) {
  if (arms.empty()) return experiment;
  for (const std::string& arm : arms) add_arm(experiment, parse_arm(arm));
  if (const Experiment* base = built_in(experiment.base.empty() ? experiment.name : experiment.base)) {
    experiment.base = base->name;
    take_verdict(experiment, *base);
  }
  return experiment;
}

std::optional<Experiment> with_earlier_arms(const Experiment& experiment,
                                            const std::filesystem::path& folder) {
  Experiment whole = experiment;
  if (std::filesystem::exists(folder / definition_file)) {
    for (const Arm& arm : read_experiment_file(folder / definition_file, known_names()).arms) {
      if (!whole.has_arm(arm.name)) whole.arms.push_back(arm);
    }
  }
  // Earlier arms may be compared with one of an earlier base's, which is not in the folder either.
  for (Arm& arm : whole.arms)
    if (!is_comparable(whole, arm.baseline)) arm.baseline.clear();
  const Experiment* same = built_in(whole.name);
  if (same != nullptr && is_same(whole, *same)) return std::nullopt;
  return whole;
}

std::optional<Experiment> experiment_of(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / definition_file;
  if (std::filesystem::exists(file)) return read_experiment_file(file, known_names());
  const std::string name = std::filesystem::weakly_canonical(folder).filename().string();
  if (const Experiment* experiment = built_in(name)) return *experiment;
  return std::nullopt;
}

}  // namespace halfscope
