// The fields of a training run: their ranges and their texts.
#include "sim/train/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include <halfscope/arithmetic/all_reduce.hpp>

#include "sim/optim/optimizers.hpp"
#include "sim/train/field_checks.hpp"
#include "sim/train/renamed.hpp"

namespace halfscope {
namespace {

constexpr FieldRange count{1, 1e9};
constexpr FieldRange interval{0, 1e9};
constexpr FieldRange positive{std::numeric_limits<double>::denorm_min(), std::numeric_limits<float>::max()};
constexpr FieldRange nonnegative{0, std::numeric_limits<float>::max()};

void parse_field(std::string_view key, std::string_view text, std::int64_t& member, const FieldRange& range) {
  member = parse_whole_number(key, text, range);
}
void parse_field(std::string_view key, std::string_view text, double& member, const FieldRange& range) {
  member = parse_number(key, text, range);
}
void parse_field(std::string_view key, std::string_view text, std::string& member, TextCheck check) {
  try {
    check(std::string(text));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} = '{}': {}", key, text, error.what()));
  }
  member = text;
}

/// Calls visit(key, member, FieldRange) for numbers and visit(key, member, TextCheck) for texts, in the order
/// of config.json: the one list of fields.
template <typename Config, typename Visit>
void visit_fields(Config& c, Visit&& visit) {
  visit("seed", c.seed, FieldRange{0, 4294967295.0}, "of weights, order of examples and stochastic rounding");
  visit("model", c.model, check_model, "see 'list models'");
  visit("dataset", c.dataset, check_dataset, "see 'list datasets'");
  visit("data", c.data, any_text, "the data set's file or folder; empty: where its package puts it");
  visit("image_size", c.image_size, FieldRange{1, 4096}, "height and width of composed scenes, pixels");
  visit("vocabulary", c.vocabulary, FieldRange{2, 1e6},
        "tokens of a text or of each language: its most frequent words, and one for the rest");
  visit("sequence_length", c.sequence_length, FieldRange{1, 4096}, "tokens per example of a text");
  visit("embedding_size", c.embedding_size, FieldRange{1, 1e5}, "of a model of texts");
  visit("hidden_size", c.hidden_size, FieldRange{1, 1e5},
        "of a recurrent cell, or between a transformer's two matrices");
  visit("layers", c.layers, FieldRange{1, 1000}, "of a transformer's encoder, and of its decoder");
  visit("heads", c.heads, FieldRange{1, 1000}, "of attention");
  visit("dropout", c.dropout, FieldRange{0, 0.99}, "probability of a zero, where the model has dropout");
  visit("width", c.width, FieldRange{0, 16},
        "share of the published channels, where the model has a width; 0: of its small version");
  visit("label_smoothing", c.label_smoothing, FieldRange{0, 0.99},
        "share of a classifier's target that is spread over all classes");
  visit("residual_gamma", c.residual_gamma, FieldRange{0, 1},
        "at the start, of the batch norm that ends each branch of resnet18 and resnet50");
  visit(
      "start_from", c.start_from, any_text,
      "a run's folder, a safetensors file, or arm:NAME for the run of that arm and the same seed: weights of "
      "the same names begin as there");
  visit("teacher", c.teacher, any_text,
        "the same of a bert, whose layers and distributions distil_bert learns from, or of a cnn_bn, whose "
        "features judge the images of dcgan");
  visit("device", c.device, check_device, "cpu or cuda");
  visit("execution", c.execution, check_execution,
        "emulated: FP32 memory, any formats; native, on cuda: memory of 16 bits and tensor cores");
  visit("steps", c.steps, count, "weight updates");
  visit("batch", c.batch, FieldRange{1, 1e6}, "examples per step");
  visit("micro_batches", c.micro_batches, FieldRange{1, 8192},
        "parts of a batch, one after the other, whose gradients are added before the step's one update");
  visit("gradient_accumulator", c.gradient_accumulator, check_role,
        "FORMAT[/ROUNDING][/OVERFLOW] of that sum");
  visit("ranks", c.ranks, FieldRange{1, most_ranks, "1 to 65536"},
        "of data-parallel training: parts of a batch with gradients of their own, which an all-reduce "
        "averages");
  visit("all_reduce", c.all_reduce, check_all_reduce,
        "ORDER[/WIRE]: the order of 'list all-reduces', and fp16 (the default), bf16 or fp32 on the wire");
  visit("predivide", c.predivide, check_predivide,
        "a rule of 'list divisions', or a factor f: gradients times 1/f before their sum, f/ranks after it");
  visit("optimizer", c.optimizer, check_optimizer, "see 'list optimizers'");
  visit("learning_rate", c.learning_rate, nonnegative, "at the start");
  visit("schedule", c.schedule, check_schedule,
        "constant; cosine or linear down to 0, linear from the end of the warm-up on");
  visit("warmup_steps", c.warmup_steps, interval, "first steps, over which the learning rate grows linearly");
  visit("clip_norm", c.clip_norm, nonnegative, "largest norm of all gradients together; 0: any");
  visit("clip_gradients", c.clip_gradients, check_clipped_gradients,
        "unscaled, or scaled, as by mistake: clip_norm measures what still carries the loss scale");
  visit("batch_norm_epsilon", c.batch_norm_epsilon, positive, "added to variances");
  visit("policy", c.policy, check_policy, "see 'list policies'; the roles below change it");
  visit("weight", c.weight, check_role, "FORMAT[/ROUNDING][/OVERFLOW] of the copy that computes");
  visit("activation", c.activation, check_role, "of outputs");
  visit("activation_gradient", c.activation_gradient, check_role, "of outputs' gradients");
  visit("weight_gradient", c.weight_gradient, check_role, "of parameters' gradients");
  visit("master_weight", c.master_weight, check_role, "of the copy that is updated");
  visit("optimizer_state", c.optimizer_state, check_optimizer_state,
        "of moments and the update's arithmetic");
  visit("accumulate", c.accumulate, check_products, "how matrix products add up; empty: by the formats");
  visit("reduce", c.reduce, check_reduce, "how large reductions add up: MODEL or MODEL@LAYERS, a glob");
  visit("allow", c.allow, check_operations,
        "operations in the roles' formats: names of 'list operations', or * for all, NAME or NAME@LAYERS, a "
        "glob, separated by commas");
  visit("deny", c.deny, check_operations, "the same of operations in FP32");
  visit("infer", c.infer, check_operations, "the same of operations in the widest format of their inputs");
  visit("cast_cache", c.cast_cache, check_cast_cache,
        "on: gradients of a weight's several uses add up in their own format; off: in FP32");
  visit("loss_weight", c.loss_weight, positive,
        "multiplies the loss; its scale is taken out again, this is not");
  visit("loss_scale", c.loss_scale, check_loss_scale, "a number, or see 'list scalers'; also called scaler");
  visit("loss_scalers", c.loss_scalers, check_loss_scalers,
        "of a model with several losses and optimizers: each has one of its own, or shared, one for all");
  visit("checkpoint_segments", c.checkpoint_segments, FieldRange{0, 1e6},
        "parts of a model's chain of blocks; tensors inside all but the last are dropped, and computed again "
        "in "
        "the backward pass; 0: all are kept");
  visit("record_gradients", c.record_gradients, check_detail,
        "of each step, for replay: none, finite, max_abs or histogram, of all weight gradients");
  visit("trackers", c.trackers, check_trackers, "all, none or names separated by commas");
  visit("observe_roles", c.observe_roles, check_roles,
        "all or roles separated by commas: whose tensors cast_statistics counts");
  visit("observe_every", c.observe_every, interval, "steps between observations; 0: never");
  visit("fp32_reference_every", c.fp32_reference_every, interval,
        "steps between comparisons with the same step in FP32; 0: never");
  visit("probe_scales", c.probe_scales, check_scales,
        "loss scales, as 1,8,2^10, at which weight gradients are compared with FP32's; empty: none");
  visit("probe_every", c.probe_every, count, "steps between probes of probe_scales");
  visit("probe_policy", c.probe_policy, check_probe_policy,
        "policy of the probes; empty: the run's own, or fp16_mixed of an FP32 run");
  visit("evaluate_every", c.evaluate_every, interval, "steps between evaluations; 0: at the end");
  visit("evaluate_examples", c.evaluate_examples, interval,
        "test examples of an evaluation, from the first on; 0: all");
  visit("checkpoint_every", c.checkpoint_every, interval, "steps between checkpoints; 0: at the end");
}

/// Fields that `to_json` leaves out at their defaults.
constexpr std::array<std::string_view, 20> later_fields{"width",
                                                        "label_smoothing",
                                                        "residual_gamma",
                                                        "layers",
                                                        "heads",
                                                        "start_from",
                                                        "teacher",
                                                        "micro_batches",
                                                        "gradient_accumulator",
                                                        "ranks",
                                                        "all_reduce",
                                                        "predivide",
                                                        "clip_gradients",
                                                        "allow",
                                                        "deny",
                                                        "infer",
                                                        "cast_cache",
                                                        "loss_scalers",
                                                        "checkpoint_segments",
                                                        "evaluate_examples"};

/// Every key and its value.
Json all_fields(const TrainConfig& config) {
  Json json;
  visit_fields(config, [&](const char* key, const auto& member, auto, const char*) { json[key] = member; });
  return json;
}

InvalidArgument unknown_key(std::string_view key) {
  const std::vector<FieldDescription> fields = describe_fields();
  std::vector<std::string_view> names;
  for (const FieldDescription& field : fields) names.emplace_back(field.name);
  return InvalidArgument(unknown_name("key", key, names));
}

const ScalerOptionEntry* find_option(std::string_view key) {
  const auto found = std::find_if(scaler_option_table.begin(), scaler_option_table.end(),
                                  [&](const ScalerOptionEntry& option) { return option.name == key; });
  return found == scaler_option_table.end() ? nullptr : &*found;
}

/// The option of the first optimizer that has one of this name; null where none has.
const EntryOption* find_optimizer_option(std::string_view key) {
  for (const OptimizerEntry& optimizer : optimizer_table)
    if (const EntryOption* option = optimizer.kind.options.find(key)) return option;
  return nullptr;
}

bool is_entry_option(std::string_view key) {
  return find_option(key) != nullptr || find_optimizer_option(key) != nullptr;
}

/// The options of the optimizer that `json` names, or of the default one.
const OptionTable& optimizer_options(const Json& json) {
  const std::string name = json.value("optimizer", TrainConfig{}.optimizer);
  return find_in_table("optimizer", name, optimizer_table).kind.options;
}

/// Each option of optimizers once, with its texts and the optimizers that take it: "of sgd, rmsprop: TEXT".
std::map<std::string_view, std::string> optimizer_option_texts() {
  std::map<std::string_view, std::map<std::string_view, std::vector<std::string_view>>> takers;
  for (const OptimizerEntry& optimizer : optimizer_table)
    for (const EntryOption& option : optimizer.kind.options)
      takers[option.name][option.summary].push_back(optimizer.name);
  std::map<std::string_view, std::string> texts;
  for (const auto& [name, by_summary] : takers) {
    std::string& text = texts[name];
    for (const auto& [summary, optimizers] : by_summary)
      text += fmt::format("{}of {}: {}", text.empty() ? "" : "; ", fmt::join(optimizers, ", "), summary);
  }
  return texts;
}

/// "scaler" is what users of other frameworks look for.
std::string_view field_called(std::string_view key) {
  return key == "scaler" ? "loss_scale" : current_name(NameKind::setting, key);
}

}  // namespace

void set_field(TrainConfig& config, std::string_view key, std::string_view value) {
  if (const ScalerOptionEntry* option = find_option(key)) {
    config.scaler_options[std::string(key)] = parse_scaler_option(*option, value);
    return;
  }
  if (const EntryOption* option = find_optimizer_option(key)) {
    config.optimizer_options[std::string(key)] = parse_number(key, value, option->range);
    return;
  }
  bool found = false;
  visit_fields(config, [&](std::string_view name, auto& member, auto rule, const char*) {
    if (name != field_called(key)) return;
    parse_field(key, current_value(name, value), member, rule);
    found = true;
  });
  if (!found) throw unknown_key(key);
}

std::string get_field(const TrainConfig& config, std::string_view key) {
  Json fields = all_fields(config);
  fields.update(to_json(config));
  const auto field = fields.find(std::string(field_called(key)));
  if (field == fields.end() && is_entry_option(key)) return "";
  if (field == fields.end()) throw unknown_key(key);
  return field->is_string() ? field->get<std::string>() : field->dump();
}

Json to_json(const TrainConfig& config) {
  Json json = all_fields(config);
  const Json defaults = all_fields({});
  for (const std::string_view key : later_fields) {
    if (json.at(key) == defaults.at(key)) json.erase(std::string(key));
  }
  for (const ScalerOptionEntry& option : scaler_option_table) {
    const auto set = config.scaler_options.find(option.name);
    if (set == config.scaler_options.end()) continue;
    const bool whole = option.kind == OptionKind::whole_number;
    json[std::string(option.name)] = whole ? Json(static_cast<std::int64_t>(set->second)) : Json(set->second);
  }
  for (const auto& [name, value] : config.optimizer_options) json[name] = value;
  return json;
}

Json without_foreign_options(Json json) {
  const OptionTable& own = optimizer_options(json);
  for (const OptimizerEntry& optimizer : optimizer_table)
    for (const EntryOption& option : optimizer.kind.options)
      if (own.find(option.name) == nullptr) json.erase(std::string(option.name));
  return json;
}

Json with_defaults(Json json) {
  const Json defaults = all_fields({});
  for (const std::string_view key : later_fields) {
    if (!json.contains(key)) json[std::string(key)] = defaults.at(key);
  }
  json = without_foreign_options(std::move(json));
  for (const EntryOption& option : optimizer_options(json))
    if (!json.contains(option.name)) json[std::string(option.name)] = option.value;
  return json;
}

std::vector<FieldDescription> describe_fields() {
  std::vector<FieldDescription> fields;
  const TrainConfig config;
  visit_fields(config, [&](const char* key, const auto&, auto, const char* summary) {
    fields.push_back({std::string(key), std::string(summary)});
  });
  for (const auto& [name, text] : optimizer_option_texts()) fields.push_back({std::string(name), text});
  for (const ScalerOptionEntry& option : scaler_option_table)
    fields.push_back({std::string(option.name), std::string(option.summary)});
  return fields;
}

}  // namespace halfscope
