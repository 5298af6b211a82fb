// halfscope memory: bytes that a training step needs, by role and by layer.
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include <halfscope/core/escape.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/definition/settings.hpp"
#include "experiments/table/table.hpp"
#include "sim/data/blank_images.hpp"
#include "sim/data/datasets.hpp"
#include "sim/train/build.hpp"
#include "sim/train/step_memory.hpp"

namespace halfscope {
namespace {

struct MemoryRequest {
  std::string model, policy, optimizer, images, kept = "all", table = "text";
  std::vector<std::string> assignments;
  std::int64_t batch = 0, classes = 1000;
  bool layers = false;
};

TrainConfig config_of(const MemoryRequest& request) {
  TrainConfig config;
  set_field(config, "model", request.model);
  if (!request.policy.empty()) set_field(config, "policy", request.policy);
  if (!request.optimizer.empty()) set_field(config, "optimizer", request.optimizer);
  for (const auto& [key, value] : parse_assignments(request.assignments)) set_field(config, key, value);
  if (request.batch > 0) config.batch = request.batch;
  return config;
}

/// "224x224x3".
Shape parse_image_shape(const std::string& text) {
  constexpr std::int64_t largest = 4096;
  Shape shape;
  const char *next = text.data(), *end = next + text.size();
  while (true) {
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(next, end, extent);
    if (error != std::errc{} || extent < 1 || extent > largest) break;
    shape.push_back(extent);
    if (stop == end && shape.size() == 3) return shape;
    if (stop == end || *stop != 'x') break;
    next = stop + 1;
  }
  throw InvalidArgument(fmt::format(
      "--images {}: give HEIGHTxWIDTHxCHANNELS, each from 1 to {}, as 224x224x3", escaped(text), largest));
}

std::unique_ptr<Dataset> examples_of(const MemoryRequest& request, const TrainConfig& config) {
  if (request.images.empty()) return open_dataset(config.dataset, dataset_spec(config));
  return make_blank_images(parse_image_shape(request.images), request.classes);
}

/// Millions of bytes, as papers count them.
Cell bytes_cell(std::int64_t bytes) {
  return {fmt::format("{:.2f} MB", static_cast<double>(bytes) * 1e-6), bytes};
}

Table by_role(const std::vector<MemoryItem>& items, const std::vector<MemoryItem>& in_fp32) {
  Table table{{{"role", "role"}, {"format", "format"}, {"elements", "elements"}, {"bytes", "bytes"}}, {}};
  for (const MemoryItem& item : items)
    table.rows.push_back({item.name, item.format, count_cell(item.elements), bytes_cell(item.bytes)});
  table.rows.push_back({"total", "", {"", {}}, bytes_cell(total_bytes(items))});
  table.rows.push_back({"total_fp32", "fp32", {"", {}}, bytes_cell(total_bytes(in_fp32))});
  return table;
}

Table by_layer(const NetworkElements& network, KeptOutputs kept) {
  Table table{
      {{"layer", "layer"}, {"kind", "kind"}, {"parameters", "parameters"}, {"outputs", "outputs kept"}}, {}};
  for (const LayerElements& layer : network.layers) {
    table.rows.push_back({layer.name, std::string(name_of(layer.kind)), count_cell(layer.parameters),
                          count_cell(is_kept(layer.kind, kept) ? layer.outputs : 0)});
  }
  return table;
}

std::string headline(const TrainConfig& config, const Dataset& dataset) {
  const auto found = config.model_options.find("width");
  const std::string width =
      found == config.model_options.end() ? "" : fmt::format(" of width {:g}", found->second);
  return fmt::format("{}{}, {} examples of {}, {}, {}", config.model, width, config.batch,
                     to_string(dataset.example_shape()), config.policy, config.optimizer);
}

void print(const MemoryRequest& request) {
  const RunSettings settings = parsed(config_of(request));
  const auto kept = parse_enum<KeptOutputs>("outputs", request.kept);
  const auto format = parse_enum<TableFormat>("table format", request.table);
  const std::unique_ptr<Dataset> dataset = examples_of(request, settings.config);
  const auto [network, items] = step_memory(settings, *dataset, kept);
  if (format == TableFormat::text) std::cout << headline(settings.config, *dataset) << "\n\n";
  const Table table = request.layers ? by_layer(network, kept)
                                     : by_role(items, step_memory(in_fp32(settings), *dataset, kept).items);
  std::cout << write_table(table, {format, format == TableFormat::text ? output_width() : any_width});
}

}  // namespace

void add_memory_command(CLI::App& app) {
  auto request = std::make_shared<MemoryRequest>();
  CLI::App* command = app.add_subcommand("memory", "bytes that a training step needs, by role or by layer");
  command->add_option("MODEL", request->model, "see 'halfscope list models'")->required();
  command->add_option("--batch", request->batch, "examples per step, 64 by default")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("--policy", request->policy, "fp32 by default, see 'halfscope list policies'");
  command->add_option("--optimizer", request->optimizer, "adam by default, see 'halfscope list optimizers'");
  CLI::Option* images = command->add_option(
      "--images", request->images, "HEIGHTxWIDTHxCHANNELS to classify, instead of a data set's examples");
  command->add_option("--classes", request->classes, "with --images: how many, 1000 by default")
      ->needs(images)
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--outputs", request->kept,
                   "all outputs are kept, or feature_maps: those of convolutions and residual sums")
      ->capture_default_str();
  command->add_flag("--layers", request->layers, "the elements of each layer instead");
  command->add_option("--table", request->table, "text, csv, markdown, latex or json")->capture_default_str();
  command
      ->add_option("--set", request->assignments,
                   "KEY=VALUE: change a setting, see 'halfscope list settings'; repeatable")
      ->allow_extra_args(false);
  command->callback([request] { print(*request); });
}

}  // namespace halfscope
