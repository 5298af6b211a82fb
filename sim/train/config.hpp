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

/// A role or accumulation setting that is empty is the policy's own.
struct TrainConfig {
  std::int64_t seed = 0;
  std::string model = "cnn_bn";
  std::string dataset = "fashion_mnist";
  std::string data{};
  std::int64_t image_size = 64;
  std::int64_t vocabulary = 4096;
  std::int64_t sequence_length = 32;
  std::int64_t embedding_size = 64;
  std::int64_t hidden_size = 64;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  double dropout = 0;
  double width = 0;  ///< share of the published channels; 0: the model's own, if it has one
  double label_smoothing = 0;
  double residual_gamma = 1;
  std::string start_from{};  ///< a run's folder, a safetensors file or arm:NAME; empty: drawn weights
  std::string teacher{};     ///< the same of the model that distil_bert learns from; empty: from none
  std::string device = "cpu";
  std::string execution = "emulated";
  std::int64_t steps = 600;
  std::int64_t batch = 64;
  std::int64_t micro_batches = 1;             ///< of equal size that a step's batch is computed in
  std::string gradient_accumulator = "fp32";  ///< format of their gradients' sum
  std::int64_t ranks = 1;                     ///< of data-parallel training, each with its part of a batch
  std::string all_reduce = "nccl_ring/fp32";  ///< of the ranks' gradients: as autocast under DDP has it
  std::string predivide = "ddp";              ///< a rule, or the factor before the sum
  std::string optimizer = "adam";
  double learning_rate = 1e-3;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;
  double clip_norm = 0;
  std::string clip_gradients = "unscaled";
  OptionValues optimizer_options{};  ///< what is left out is the optimizer's own default
  double batch_norm_epsilon = 1e-5;
  std::string policy = "fp32";
  std::string weight{};
  std::string activation{};
  std::string activation_gradient{};
  std::string weight_gradient{};
  std::string master_weight{};
  std::string optimizer_state{};
  std::string accumulate{};  ///< products: sequential, fused, chunked or tensor_core, as "tensor_core(volta)"
  std::string reduce{};      ///< other sums: any but tensor_core, "MODEL" or "MODEL@LAYERS"
  std::string allow{}, deny{}, infer{};  ///< operations on each list, "OPERATION" or "OPERATION@LAYERS"
  std::string cast_cache = "on";
  double loss_weight = 1;
  std::string loss_scale = "none";
  std::string loss_scalers = "each";
  std::int64_t checkpoint_segments = 0;
  ScalerSettings scaler_options{};  ///< of the loss scaler; what is left out is the scaler's own default
  std::string record_gradients = "max_abs";
  std::string trackers = "all";
  std::string observe_roles = "activation_gradient,weight_gradient";
  std::int64_t observe_every = 10;
  std::int64_t fp32_reference_every = 0;
  std::string probe_scales{};
  std::int64_t probe_every = 50;
  std::string probe_policy{};  ///< empty: the run's own, or fp16_mixed where that is FP32
  std::int64_t evaluate_every = 0;
  std::int64_t evaluate_examples = 0;
  std::int64_t checkpoint_every = 100;
};

/// Sets the field called `key` from text; `scaler` is another name of loss_scale, and an option of loss
/// scalers and of optimizers is a key too. Throws InvalidArgument for an unknown key (the nearest is offered)
/// or a value that is malformed or out of range (the range is given).
void set_field(TrainConfig& config, std::string_view key, std::string_view value);

/// The field's value as `set_field` takes it, empty of an entry's option that is left out. Throws
/// InvalidArgument for an unknown key.
[[nodiscard]] std::string get_field(const TrainConfig& config, std::string_view key);

/// Every key and its value, in order; of the entries' options those that are set, and of the settings that
/// came after version 0.1's first runs those that are not at their defaults, so that those runs stay the
/// same.
[[nodiscard]] Json to_json(const TrainConfig& config);
/// `json` without the options of other optimizers than its own, which a run's config.json of earlier versions
/// holds; they had no effect.
[[nodiscard]] Json without_foreign_options(Json json);
/// `json`, of `to_json` or a run's config.json, without foreign options, and with the settings that it leaves
/// out at their defaults.
[[nodiscard]] Json with_defaults(Json json);

struct FieldDescription {
  std::string name;
  std::string summary;
};
/// Every key, in order; an option of entries with those that take it.
[[nodiscard]] std::vector<FieldDescription> describe_fields();

}  // namespace halfscope
