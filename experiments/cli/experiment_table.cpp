// Reads the definitions that are compiled in.
#include "experiments/cli/experiment_table.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "experiments/analyses/analyses.hpp"
#include "experiments/definition/embedded_definitions.hpp"
#include "experiments/results/arm_columns.hpp"

namespace halfscope {
namespace {

/// Without experiments to build on: a definition stands by itself.
KnownNames names_of_definitions() {
  static const std::vector<std::string_view> names = analysis_names(), columns = arm_column_keys();
  return {.base = nullptr, .analyses = names, .columns = columns};
}

/// The experiment of a definition, read at its first use: all of them take longer than most commands.
const Experiment& experiment_of_definition(const EmbeddedDefinition& definition) {
  static std::mutex mutex;
  static std::map<std::string_view, Experiment> experiments;
  const std::lock_guard lock(mutex);
  const auto known = experiments.find(definition.name);
  if (known != experiments.end()) return known->second;
  const std::string file = std::string(definition.name) + ".toml";
  return experiments.emplace(definition.name, read_experiment(definition.text, file, names_of_definitions()))
      .first->second;
}

std::vector<Experiment> read_definitions() {
  std::vector<Experiment> experiments;
  for (const EmbeddedDefinition& definition : embedded_definitions())
    experiments.push_back(experiment_of_definition(definition));
  std::ranges::stable_sort(experiments, {}, &Experiment::place);
  return experiments;
}

}  // namespace

const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table = read_definitions();
  return table;
}

const Experiment* built_in(std::string_view name) {
  const auto definitions = embedded_definitions();
  const auto known = std::ranges::find(definitions, name, &EmbeddedDefinition::name);
  return known == definitions.end() ? nullptr : &experiment_of_definition(*known);
}

const Experiment& built_in_experiment(std::string_view name) {
  const Experiment* known = built_in(name);
  return known != nullptr ? *known : find_in_table("experiment", name, experiment_table());
}

KnownNames known_names() {
  KnownNames names = names_of_definitions();
  names.base = built_in_experiment;
  return names;
}

std::string_view definition_text(std::string_view name) {
  return find_in_table("experiment", name, embedded_definitions()).text;
}

}  // namespace halfscope
