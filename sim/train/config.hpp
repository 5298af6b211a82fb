// Everything that decides a training run: one aggregate, one list of its fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/scaler_options.hpp>

#include "sim/options/entry_options.hpp"

namespace halfscope {

enum class Schedule : std::uint8_t { constant, cosine, linear };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Schedule>{"constant", "cosine", "linear"};

/// Scalers of a model with several losses: one for each, as Apex has with num_losses and a loss_id, or one
/// for all, as PyTorch's GradScaler: each loss's update is skipped for its own gradients alone, and the
/// scaler learns once a step whether any were not finite.
enum class LossScalers : std::uint8_t { each, shared };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<LossScalers>{"each", "shared"};

/// Which gradients clip_norm measures: those that carry the loss scale no more, or, a common mistake, those
/// that still do, whose norm is that many times as large.
enum class ClippedGradients : std::uint8_t { unscaled, scaled };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<ClippedGradients>{"unscaled", "scaled"};

/// FORMAT[/ROUNDING][/OVERFLOW] of each role; an empty one is the policy's own.
struct RoleSettings {
  std::string weight{};
  std::string activation{};
  std::string activation_gradient{};
  std::string weight_gradient{};
  std::string master_weight{};
  std::string optimizer_state{};
};

/// Sums and lists of operations; an empty one is the policy's own.
struct OperationSettings {
  std::string order{};      ///< products: sequential, fused, chunked or tensor_core, as "tensor_core(volta)"
  std::string sum_order{};  ///< other sums: any but tensor_core, "ORDER" or "ORDER@LAYERS"
  std::string allow{}, deny{}, infer{};  ///< operations on each list, "OPERATION" or "OPERATION@LAYERS"
  std::string cast_cache = "on";
  std::string weight_sum{};  ///< how updates are added to stored weights
  std::string operands{};    ///< formats of products' operands: rules behind those of the policy
};

/// Parts of a step's batch, one after the other or side by side, and how their gradients become one.
struct PartSettings {
  std::int64_t micro_batches = 1;     ///< equal parts in which a step's batch is computed
  std::string gradient_sum = "fp32";  ///< format of their gradients' sum
  std::int64_t ranks = 1;             ///< ranks of data-parallel training, each with its part of a batch
  std::string all_reduce = "nccl_ring/fp32";  ///< sum of the ranks' gradients: as autocast under DDP has it
  std::string predivide = "ddp";              ///< a rule, or the factor before the sum
};

/// Comparisons of weight gradients with FP32's, at several loss scales.
struct ProbeSettings {
  std::string scales{};
  std::int64_t every = 50;
  std::string policy{};  ///< empty: the run's own, or fp16_mixed of an FP32 run
};

/// Steps between evaluations, and the test examples of one; 0: at the end, and all.
struct EvaluationSettings {
  std::int64_t every = 0;
  std::int64_t examples = 0;
  std::string second_execution{};  ///< "policy=NAME" or "order=ORDER"; empty: none
};

/// Settings that every run has, beside the options of its entries.
struct TrainConfig {
  std::int64_t seed = 0;
  std::string model = "cnn_bn";
  OptionValues model_options{};  ///< an option that is left out has the model's own default
  std::string dataset = "fashion_mnist";
  OptionValues dataset_options{};  ///< an option that is left out has the data set's own default
  std::string data{};
  std::string start_from{};  ///< a run's folder, a safetensors file or arm:NAME; empty: drawn weights
  std::string teacher{};     ///< likewise, of the model that this one learns from; empty: from none
  std::string device = "cpu";
  std::string execution = "emulated";
  std::int64_t steps = 600;
  std::int64_t batch = 64;
  PartSettings parts{};
  std::string optimizer = "adam";
  double learning_rate = 1e-3;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;
  double clip_norm = 0;
  std::string clip_gradients = "unscaled";
  OptionValues optimizer_options{};  ///< an option that is left out has the optimizer's own default
  std::string moments{};             ///< formats of the optimizer's arrays of state; empty: optimizer_state's
  std::string policy = "fp32";
  std::string policy_from{};  ///< "step=N, policy=NAME": another policy from a step on; empty: none
  RoleSettings roles{};
  OperationSettings operations{};
  double loss_weight = 1;
  std::string loss_scale = "none";
  ScalerSettings scaler_options{};  ///< an option that is left out has the loss scaler's own default
  std::string loss_scalers = "each";
  std::int64_t checkpoint_segments = 0;
  std::string record_gradients = "max_abs";
  std::string trackers = "all";
  std::string observe_roles = "activation_gradient,weight_gradient";
  std::int64_t observe_every = 10;
  std::int64_t fp32_reference_every = 0;
  std::int64_t zero_causes_every = 0;
  std::string what_if_weights{};  ///< formats of weights, "fp16,bf16"; empty: none
  ProbeSettings probes{};
  EvaluationSettings evaluation{};
  std::int64_t checkpoint_every = 100;
};

/// Sets the field called `given` from text; `scaler` is another name of loss_scale, and an option of an entry
/// is a key too. Throws InvalidArgument for an unknown key (the nearest is offered), for one of
/// recorded_keys.hpp, or for a value that is malformed or out of range (the range is given).
void set_field(TrainConfig& config, std::string_view given, std::string_view value);

/// The field's value as `set_field` takes it, empty of an entry's option that is left out. Throws
/// InvalidArgument for an unknown key.
[[nodiscard]] std::string get_field(const TrainConfig& config, std::string_view key);

/// Every key of config.json and its value, in order; of the entries' options those that are set, and
/// second_execution and what_if_weights where there are some: earlier runs have none.
[[nodiscard]] Json to_json(const TrainConfig& config);
/// `json` without the options of other models, data sets and optimizers than its own, which a run's
/// config.json of earlier versions holds; they had no effect.
[[nodiscard]] Json without_foreign_options(Json json);
/// `json`, of `to_json` or a run's config.json of any version, without foreign options, and with the settings
/// and options that it leaves out at their defaults.
[[nodiscard]] Json with_defaults(Json json);

struct FieldDescription {
  std::string name;
  std::string summary;
  std::string group;  ///< "run", or the key of the entries that take the option, such as "model"
};
/// Every key, in order; an option of entries with those that take it.
[[nodiscard]] std::vector<FieldDescription> describe_fields();

}  // namespace halfscope
