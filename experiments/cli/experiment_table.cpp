// Reads the definitions that are compiled in.
#include "experiments/cli/experiment_table.hpp"

#include <algorithm>

#include "experiments/analyses/analyses.hpp"
#include "experiments/definition/embedded_definitions.hpp"
#include "experiments/results/arm_columns.hpp"

namespace halfscope {
namespace {

/// Without experiments to build on: a definition stands by itself.
KnownNames names_of_definitions() {
  static const std::vector<std::string_view> names = analysis_names(), columns = arm_column_keys();
  return {.builtin = {}, .analyses = names, .columns = columns};
}

std::vector<Experiment> read_definitions() {
  std::vector<Experiment> experiments;
  for (const EmbeddedDefinition& definition : embedded_definitions())
    experiments.push_back(
        read_experiment(definition.text, std::string(definition.name) + ".toml", names_of_definitions()));
  std::ranges::stable_sort(experiments, {}, &Experiment::place);
  return experiments;
}

}  // namespace

const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table = read_definitions();
  return table;
}

KnownNames known_names() {
  KnownNames names = names_of_definitions();
  names.builtin = experiment_table();
  return names;
}

std::string_view definition_text(std::string_view name) {
  return find_in_table("experiment", name, embedded_definitions()).text;
}

}  // namespace halfscope
