// halfscope list: names to choose from, read off the tables.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/arithmetic/gradient_division.hpp>
#include <halfscope/format/block_format.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/policy/policy.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/stats/trackers.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/experiment_source.hpp"
#include "experiments/cli/experiment_table.hpp"
#include "experiments/cli/list_formats.hpp"
#include "experiments/definition/experiment_file.hpp"
#include "experiments/table/text_width.hpp"
#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/tape/operation_formats.hpp"
#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

template <typename Table>
Json entries(const Table& table) {
  Json list = Json::array();
  for (const auto& entry : table) {
    list.push_back({{"name", std::string(entry.name)}, {"summary", std::string(entry.summary)}});
  }
  return list;
}

Json dataset_entries() {
  Json list = entries(datasets);
  for (std::size_t i = 0; i < datasets.size(); ++i) list[i]["data"] = name_of(datasets[i].kind.data);
  return list;
}

/// As the arm's own settings or the experiment's have it.
std::string dataset_of(const Experiment& experiment, const Arm& arm) {
  TrainConfig config;
  for (const Settings& settings : {experiment.settings, arm.settings}) {
    for (const auto& [key, value] : settings) {
      if (key == "dataset") set_field(config, key, value);
    }
  }
  return config.dataset;
}

Json experiments() {
  Json list = Json::array();
  for (const Experiment& experiment : experiment_table()) {
    Json arms = Json::array();
    for (const Arm& arm : experiment.arms) {
      const std::string dataset = dataset_of(experiment, arm);
      arms.push_back({{"name", arm.name},
                      {"summary", arm.summary},
                      {"dataset", dataset},
                      {"data", name_of(find_in_table("dataset", dataset, datasets).kind.data)}});
    }
    Json full_arms = experiment.full_arms;
    if (full_arms.empty()) {
      for (const Arm& arm : experiment.arms) full_arms.push_back(arm.name);
    }
    list.push_back({{"name", experiment.name},
                    {"summary", experiment.summary},
                    {"paper", experiment.paper},
                    {"arms", arms},
                    {"varied", fmt::format("{}", fmt::join(experiment.varied, ","))},
                    {"in_quick_set", experiment.quick_set == QuickSet::included},
                    {"full_arms", full_arms}});
  }
  return list;
}

Json scalers() {
  Json list = entries(scaler_table);
  for (std::size_t i = 0; i < scaler_table.size(); ++i) {
    Json options = Json::object();
    for (const ScalerOption& option : scaler_table[i].options)
      options[std::string(option.name)] = option.value;
    list[i]["options"] = options;
  }
  return list;
}

Json orders() {
  Json list = entries(accumulate_models);
  for (const Json& entry : entries(cpu_product_models)) list.push_back(entry);
  list.push_back(
      {{"name", std::string(library_products.name)}, {"summary", std::string(library_products.summary)}});
  return list;
}

/// Each with its formats under every policy.
Json operations() {
  Json list = Json::array();
  for (std::size_t i = 0; i < operation_table.size(); ++i) {
    Json policies = Json::object();
    for (const NamedPolicy& policy : policy_table) {
      const OperationFormats formats = operation_formats(policy.make(), OperationId(i));
      policies[std::string(policy.name)] = {{"inputs", formats.inputs},
                                            {"parameters", formats.parameters},
                                            {"arithmetic", formats.arithmetic},
                                            {"output", formats.output},
                                            {"text", to_string(formats)}};
    }
    list.push_back({{"name", std::string(operation_table[i].name)}, {"policies", policies}});
  }
  return list;
}

Json settings() {
  const std::vector<FieldDescription> fields = describe_fields();
  Json list = entries(fields);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    list[i]["group"] = fields[i].group;
    list[i]["recorded"] = recorded_key(fields[i].name);
  }
  return list;
}

Json roundings() {
  Json list = Json::array();
  for (const std::string_view name : enum_names<Rounding>) list.push_back({{"name", std::string(name)}});
  return list;
}

/// Kinds of things to list: one line per kind.
struct Listing {
  std::string_view name;
  Json (*entries)();
};
constexpr std::array listings{
    Listing{"experiments", experiments},
    Listing{"policies", [] { return entries(policy_table); }},
    Listing{"operations", operations},
    Listing{"formats", format_entries},
    Listing{"block-formats", [] { return entries(block_formats); }},
    Listing{"scale-rules", scale_rule_entries},
    Listing{"roundings", roundings},
    Listing{"orders", orders},
    Listing{"all-reduces", [] { return entries(all_reduce_orders); }},
    Listing{"divisions", [] { return entries(division_rules); }},
    Listing{"scalers", scalers},
    Listing{"models", [] { return entries(model_table); }},
    Listing{"datasets", dataset_entries},
    Listing{"optimizers", [] { return entries(optimizer_table); }},
    Listing{"trackers", [] { return entries(tracker_table); }},
    Listing{"settings", settings},
};

/// How much of its entries a list shows.
enum class Detail : std::uint8_t { names, options, arms };

/// "initial_scale=65536 growth_factor=2" of a scaler.
std::string options_line(const Json& options) {
  std::string line;
  for (const auto& [name, value] : options.items())
    line += fmt::format("{}{}={:.10g}", line.empty() ? "" : " ", name, value.get<double>());
  return line;
}

using Lines = std::vector<std::pair<std::string, std::string>>;

/// Each treatment of an operation with the policies that have it.
Lines treatments(const Json& policies) {
  Lines lines;
  for (const auto& [policy, formats] : policies.items()) {
    const std::string text = "  " + formats["text"].get<std::string>();
    const auto found = std::ranges::find(lines, text, &Lines::value_type::first);
    if (found == lines.end()) {
      lines.emplace_back(text, policy);
    } else {
      found->second += ", " + policy;
    }
  }
  return lines;
}

/// Names and summaries, with what belongs to an entry below it.
Lines lines_of(const Json& list, Detail detail) {
  Lines lines;
  for (const Json& entry : list) {
    lines.emplace_back(entry["name"].get<std::string>(), entry.value("summary", ""));
    if (detail != Detail::names && entry.contains("options") && !entry["options"].empty())
      lines.emplace_back("", "  " + options_line(entry["options"]));
    if (detail != Detail::names && entry.contains("overflow_limit"))
      lines.emplace_back("", "  " + limits_line(entry));
    if (entry.contains("policies")) {
      for (auto& line : treatments(entry["policies"])) lines.push_back(std::move(line));
    }
    if (detail != Detail::arms || !entry.contains("arms")) continue;
    for (const Json& arm : entry["arms"])
      lines.emplace_back("  " + arm["name"].get<std::string>(), arm["summary"].get<std::string>());
  }
  return lines;
}

void print(std::string_view kind, const Lines& lines) {
  const std::size_t width = output_width();
  std::size_t longest = 0;
  for (const auto& [name, summary] : lines) longest = std::max(longest, name.size());
  std::cout << kind << "\n";
  for (const auto& [name, summary] : lines) {
    if (summary.empty()) {
      std::cout << "  " << name << "\n";
      continue;
    }
    const std::string blanks(longest + 4, ' ');
    const std::size_t room = width - std::min(width, blanks.size());
    std::istringstream text(wrapped(summary, room));
    std::string before = fmt::format("  {:<{}}  ", name, longest);
    for (std::string line; std::getline(text, line); before = blanks) std::cout << before << line << "\n";
  }
}

/// A paragraph for each group.
void print_settings(const Json& list) {
  std::vector<std::pair<std::string, Json>> groups;
  for (const Json& setting : list) {
    const std::string group = setting["group"].get<std::string>();
    if (groups.empty() || groups.back().first != group) groups.emplace_back(group, Json::array());
    groups.back().second.push_back(setting);
  }
  for (const auto& [group, settings] : groups) {
    if (&group != &groups.front().first) std::cout << "\n";
    print(group == "run" ? "settings of every run" : "options of the " + group,
          lines_of(settings, Detail::names));
  }
}

/// One kind with all that it has, or all kinds with a line per entry; the many settings and operations are
/// for lists of their own.
void print(const Json& lists, Detail detail) {
  const bool is_overview = lists.size() > 1;
  for (const auto& [kind, list] : lists.items()) {
    if (is_overview && (kind == "settings" || kind == "operations")) {
      std::cout << fmt::format("{0}\n  {1} of them: 'halfscope list {0}'\n", kind, list.size());
    } else if (kind == "settings") {
      print_settings(list);
    } else {
      print(kind, lines_of(list, is_overview && detail == Detail::options ? Detail::names : detail));
    }
  }
}

}  // namespace

std::vector<std::string> list_kinds() {
  std::vector<std::string> kinds;
  for (const Listing& listing : listings) kinds.emplace_back(listing.name);
  return kinds;
}

void add_list_command(CLI::App& app) {
  struct Options {
    std::string kind, toml;
    bool json = false, arms = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("list", "names to choose from");
  command->add_option("KIND", options->kind,
                      fmt::format("one of {}; all of them by default", fmt::join(list_kinds(), ", ")));
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->add_flag("--arms", options->arms, "arms of the experiments too");
  command->add_option("--toml", options->toml, "EXPERIMENT as a file that 'halfscope run' takes")
      ->excludes("--json", "--arms");
  command->callback([options] {
    if (!options->toml.empty()) {
      std::cout << definition_text(options->toml);
      return;
    }
    Json lists;
    for (const Listing& listing : listings) {
      if (options->kind.empty() || options->kind == listing.name) {
        lists[std::string(listing.name)] = listing.entries();
      }
    }
    if (lists.empty()) (void)find_in_table("kind", options->kind, listings);
    if (options->json) {
      std::cout << to_text(lists);
    } else {
      print(lists, options->arms ? Detail::arms : Detail::options);
    }
  });
}

}  // namespace halfscope
