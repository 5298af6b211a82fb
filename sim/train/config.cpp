// The fields of a training run: their ranges and their texts.
#include "sim/train/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "sim/train/entry_tables.hpp"
#include "sim/train/field_checks.hpp"
#include "sim/train/recorded_keys.hpp"

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
    throw refused_text(key, text, error.what());
  }
  member = text;
}

/// Calls visit(key, member, FieldRange) for numbers and visit(key, member, TextCheck) for texts, in the order
/// of config.json: the one list of fields.
template <typename Config, typename Visit>
void visit_fields(Config& c, Visit&& visit) {
  visit("seed", c.seed, FieldRange{0, 4294967295.0},
        "random bits of weights, order of examples and stochastic rounding");
  visit("model", c.model, check_model, "see 'list models'");
  visit("dataset", c.dataset, check_dataset, "see 'list datasets'");
  visit("data", c.data, any_text, "the data set's file or folder; empty: where its package puts it");
  visit(
      "start_from", c.start_from, any_text,
      "run whose weights begin those of the same names: its folder, a safetensors file, or arm:NAME for that "
      "arm's run of the same seed");
  visit("teacher", c.teacher, any_text,
        "run of a model that this one learns from, or whose features judge its images; named as in "
        "start_from");
  visit("device", c.device, check_device, "cpu or cuda");
  visit("execution", c.execution, check_execution,
        "emulated: FP32 memory, any formats; native, on cuda: memory of 16 bits and tensor cores");
  visit("steps", c.steps, count, "weight updates");
  visit("batch", c.batch, FieldRange{1, 1e6}, "examples per step");
  visit("micro_batches", c.parts.micro_batches, FieldRange{1, 8192},
        "parts of a batch, one after the other, whose gradients are added before the step's one update");
  visit("gradient_sum", c.parts.gradient_sum, check_role,
        "FORMAT[/ROUNDING][/OVERFLOW] of the micro-batches' sum");
  visit("ranks", c.parts.ranks, FieldRange{1, most_ranks, "1 to 65536"},
        "parts of a batch in data-parallel training, with gradients of their own, which an all-reduce "
        "averages");
  visit("all_reduce", c.parts.all_reduce, check_all_reduce,
        "ORDER[/WIRE]: the order of 'list all-reduces', and fp16 (the default), bf16 or fp32 on the wire");
  visit("predivide", c.parts.predivide, check_predivide,
        "a rule of 'list divisions', or a factor f: gradients times 1/f before their sum, f/ranks after it");
  visit("optimizer", c.optimizer, check_optimizer, "see 'list optimizers'");
  visit("learning_rate", c.learning_rate, nonnegative, "rate at the start");
  visit("schedule", c.schedule, check_schedule,
        "constant; cosine or linear down to 0, linear from the end of the warm-up on");
  visit("warmup_steps", c.warmup_steps, interval, "first steps, over which the learning rate grows linearly");
  visit("clip_norm", c.clip_norm, nonnegative, "largest norm of all gradients together; 0: any");
  visit("clip_gradients", c.clip_gradients, check_clipped_gradients,
        "unscaled, or scaled, as by mistake: clip_norm measures what still carries the loss scale");
  visit("policy", c.policy, check_policy,
        "see 'list policies', or a format of the network's tensors; the settings below change it");
  visit(
      "policy_from", c.policy_from, check_policy_from,
      "step=N, policy=NAME: from step N on formats and sums are those of that policy, while weights and the "
      "optimizer's state stay as they are stored; empty: never");
  visit("weight", c.roles.weight, check_role, "FORMAT[/ROUNDING][/OVERFLOW] of the copy that computes");
  visit("activation", c.roles.activation, check_role, "format of outputs");
  visit("activation_gradient", c.roles.activation_gradient, check_role, "format of outputs' gradients");
  visit("weight_gradient", c.roles.weight_gradient, check_role, "format of parameters' gradients");
  visit("master_weight", c.roles.master_weight, check_role, "format of the copy that is updated");
  visit("optimizer_state", c.roles.optimizer_state, check_optimizer_state,
        "format of moments and of the update's arithmetic");
  visit(
      "moments", c.moments, check_moments,
      "formats of the optimizer's state between steps: SLOT=FORMAT[/ROUNDING][/OVERFLOW][+scaled], separated "
      "by commas, as second_moment=bf16/stochastic; scaled: by a power of two for the array's maximum");
  visit("order", c.operations.order, check_order,
        "order in which matrix products add up; empty: by the formats");
  visit("sum_order", c.operations.sum_order, check_sum_order,
        "order in which large reductions add up: ORDER or ORDER@LAYERS, a glob");
  visit("allow", c.operations.allow, check_operations,
        "operations in the roles' formats: names of 'list operations', or * for all, NAME or NAME@LAYERS, a "
        "glob, separated by commas");
  visit("deny", c.operations.deny, check_operations, "operations in FP32, named as in allow");
  visit("infer", c.operations.infer, check_operations,
        "operations in the widest format of their inputs, named as in allow");
  visit("cast_cache", c.operations.cast_cache, check_cast_cache,
        "on: gradients of a weight's several uses add up in their own format; off: in FP32");
  visit("weight_sum", c.operations.weight_sum, check_weight_sum,
        "sum of updates and stored weights: plain, kahan or two_components, which keep a number of "
        "master_weight's format beside each; empty: the policy's");
  visit("operands", c.operations.operands, check_operands,
        "formats of products' operands: rules [OPERATION.]PRODUCT[.SIDE]=FORMAT[@GLOB] behind those of the "
        "policy, separated by commas, as forward.right=nvfp4_16x16 or *=role@output; FORMAT[+hadamard]"
        "[+current|+delayed]");
  visit("loss_weight", c.loss_weight, positive,
        "multiplies the loss; its scale is taken out again, this is not");
  visit("loss_scale", c.loss_scale, check_loss_scale, "a number, or see 'list scalers'; also called scaler");
  visit("loss_scalers", c.loss_scalers, check_loss_scalers,
        "scalers of a model with several losses and optimizers: each has one of its own, or shared, one for "
        "all");
  visit("checkpoint_segments", c.checkpoint_segments, FieldRange{0, 1e6},
        "parts of a model's chain of blocks; tensors inside all but the last are dropped, and computed again "
        "in the backward pass; 0: all are kept");
  visit("record_gradients", c.record_gradients, check_detail,
        "detail for replay at each step: none, finite, max_abs or histogram, of all weight gradients");
  visit("trackers", c.trackers, check_trackers, "observers of a run: all, none or names separated by commas");
  visit("observe_roles", c.observe_roles, check_roles,
        "roles whose tensors cast_statistics counts: all, or names separated by commas");
  visit("observe_every", c.observe_every, interval, "steps between observations; 0: never");
  visit("fp32_reference_every", c.fp32_reference_every, interval,
        "steps between comparisons with the same step in FP32; 0: never");
  visit("zero_causes_every", c.zero_causes_every, interval,
        "steps between explanations of the zeros in linear layers' weight gradients, each of six more steps; "
        "0: "
        "never");
  visit("what_if_weights", c.what_if_weights, check_weight_formats,
        "formats, as fp16,bf16: at each observation, how much of the updates weights of the format would "
        "apply, "
        "at 2^-16 to 2^6 times the learning rate; empty: none");
  visit("probe_scales", c.probes.scales, check_scales,
        "loss scales, as 1,8,2^10, at which weight gradients are compared with FP32's; empty: none");
  visit("probe_every", c.probes.every, count, "steps between probes of probe_scales");
  visit("probe_policy", c.probes.policy, check_probe_policy,
        "policy of the probes; empty: the run's own, or fp16_mixed of an FP32 run");
  visit("evaluate_every", c.evaluation.every, interval, "steps between evaluations; 0: at the end");
  visit("evaluate_examples", c.evaluation.examples, interval,
        "test examples of an evaluation, from the first on; 0: all");
  visit("second_execution", c.evaluation.second_execution, check_second_execution,
        "policy=NAME or order=ORDER: at the end the test examples' log-probabilities are computed once "
        "more with that policy or those products, and compared; empty: never");
  visit("checkpoint_every", c.checkpoint_every, interval, "steps between checkpoints; 0: at the end");
}

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

bool is_entry_option(std::string_view key) {
  return find_option(key) != nullptr ||
         std::ranges::any_of(entry_tables(), [&](const EntryTable& t) { return t.find(key) != nullptr; });
}

/// Every key and its value, by setting: of the entries' options those that are set, and what earlier runs do
/// not have only where it is set.
Json set_fields(const TrainConfig& config) {
  Json json = all_fields(config);
  if (config.evaluation.second_execution.empty()) json.erase("second_execution");
  if (config.what_if_weights.empty()) json.erase("what_if_weights");
  for (const EntryTable& table : entry_tables())
    for (const auto& [name, value] : config.*table.values) json[name] = json_of(*table.find(name), value);
  for (const ScalerOptionEntry& option : scaler_option_table) {
    const auto set = config.scaler_options.find(option.name);
    if (set == config.scaler_options.end()) continue;
    const bool whole = option.kind == OptionKind::whole_number;
    json[std::string(option.name)] = whole ? Json(static_cast<std::int64_t>(set->second)) : Json(set->second);
  }
  return json;
}

/// The options of the entry that `json` names in `table`, or of the default one.
const OptionTable& own_options(const EntryTable& table, const Json& json) {
  return table.options_of(json.value(table.kind, TrainConfig{}.*table.chosen));
}

/// "scaler" is what users of other frameworks look for.
std::string_view field_called(std::string_view key) {
  return key == "scaler" ? "loss_scale" : key;
}

}  // namespace

void set_field(TrainConfig& config, std::string_view given, std::string_view value) {
  refuse_recorded_key(given);
  const std::string_view key = field_called(given);
  if (const ScalerOptionEntry* option = find_option(key)) {
    config.scaler_options[std::string(key)] = parse_scaler_option(*option, value);
    return;
  }
  for (const EntryTable& table : entry_tables()) {
    if (const EntryOption* option = table.find(key)) {
      (config.*table.values)[std::string(option->name)] = parse_option(*option, value);
      return;
    }
  }
  bool found = false;
  visit_fields(config, [&](std::string_view name, auto& member, auto rule, const char*) {
    if (name != key) return;
    parse_field(given, value, member, rule);
    found = true;
  });
  if (!found) throw unknown_key(given);
}

std::string get_field(const TrainConfig& config, std::string_view key) {
  refuse_recorded_key(key);
  Json fields = all_fields(config);
  fields.update(set_fields(config));
  const auto field = fields.find(std::string(field_called(key)));
  if (field == fields.end() && is_entry_option(field_called(key))) return "";
  if (field == fields.end()) throw unknown_key(key);
  return field->is_string() ? field->get<std::string>() : field->dump();
}

Json to_json(const TrainConfig& config) {
  return recorded(set_fields(config));
}

Json without_foreign_options(Json json) {
  for (const EntryTable& table : entry_tables()) {
    const OptionTable& own = own_options(table, json);
    for (const EntryWithOptions& entry : table.entries)
      for (const EntryOption& option : *entry.options)
        if (own.find(option.name) == nullptr) json.erase(std::string(option.name));
  }
  return json;
}

Json with_defaults(Json json) {
  json = without_foreign_options(std::move(json));
  const Json defaults = recorded(all_fields({}));
  for (const auto& [key, value] : defaults.items())
    if (!json.contains(key)) json[key] = value;
  for (const EntryTable& table : entry_tables())
    for (const EntryOption& option : own_options(table, json))
      if (!json.contains(option.name)) json[std::string(option.name)] = json_of(option, option.value);
  return json;
}

std::vector<FieldDescription> describe_fields() {
  std::vector<FieldDescription> fields;
  const TrainConfig config;
  visit_fields(config, [&](const char* key, const auto&, auto, const char* summary) {
    fields.push_back({std::string(key), std::string(summary), "run"});
  });
  for (const EntryTable& table : entry_tables())
    for (FieldDescription& option : describe_options(table)) fields.push_back(std::move(option));
  for (const ScalerOptionEntry& option : scaler_option_table)
    fields.push_back({std::string(option.name), std::string(option.summary), "loss_scale"});
  return fields;
}

}  // namespace halfscope
