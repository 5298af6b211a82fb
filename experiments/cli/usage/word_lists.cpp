// Names that the program's tables hold, by the option or argument that takes them.
#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/dtype.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/scaling/scalers.hpp>

#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/calc/calc_operations.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/experiment_table.hpp"
#include "experiments/cli/usage/generate.hpp"
#include "experiments/table/table.hpp"
#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/train/memory.hpp"

namespace halfscope {
namespace {

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

template <typename Enum>
std::vector<std::string> enumerators() {
  return {enum_names<Enum>.begin(), enum_names<Enum>.end()};
}

std::vector<std::string> scaler_names() {
  std::vector<std::string> names = strings(table_names(scaler_table));
  names.emplace_back("all");
  return names;
}

}  // namespace

std::vector<WordList> word_lists() {
  const std::vector<std::string> formats = strings(table_names(format_catalogue));
  std::vector<std::string> orders = strings(table_names(accumulate_models));
  for (const NamedAccumulateModel& entry : cpu_product_models) {
    orders.emplace_back(entry.name);
    std::erase(orders.back(), ' ');  // one word of a shell
  }
  const std::vector<std::string> experiments = strings(table_names(experiment_table()));
  std::vector<std::string> tensor_formats = strings(table_names(block_formats));
  tensor_formats.insert(tensor_formats.end(), formats.begin(), formats.end());
  return {{"--format", formats},
          {"formats --format", tensor_formats},
          {"--from", formats},
          {"--input", formats},
          {"--output", formats},
          {"--rounding", enumerators<Rounding>()},
          {"--overflow", enumerators<Overflow>()},
          {"--order", orders},
          {"--scaler", scaler_names()},
          {"--dtype", enumerators<DType>()},
          {"--table", enumerators<TableFormat>()},
          {"--sort", sort_key_names()},
          {"--device", {"cpu", "cuda"}},
          {"--size", {"small", "full", "smoke"}},
          {"--policy", strings(table_names(policy_table))},
          {"--optimizer", strings(table_names(optimizer_table))},
          {"--outputs", enumerators<KeptOutputs>()},
          {"memory MODEL", strings(table_names(model_table))},
          {"list --toml", experiments},
          {"run EXPERIMENT", experiments},
          {"calc OPERATION", strings(table_names(calc_operations()))},
          {"generate KIND", {"bash", "zsh", "man"}},
          {"list KIND", list_kinds()}};
}

std::vector<std::string> words_of(const std::string& command, const CLI::Option& option) {
  const std::string name =
      option.get_positional() ? option.get_name(true, false) : option.get_name(false, false);
  const std::vector<WordList> lists = word_lists();
  for (const std::string& names : {command + " " + name, name}) {
    for (const WordList& list : lists) {
      if (list.names == names) return list.words;
    }
  }
  return {};
}

}  // namespace halfscope
