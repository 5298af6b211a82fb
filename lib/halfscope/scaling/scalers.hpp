// The loss scalers that have a name: one line per scaler.
#pragma once

#include <memory>
#include <span>

#include <halfscope/scaling/scalers/backoff_scaler.hpp>
#include <halfscope/scaling/scalers/deepspeed_scaler.hpp>
#include <halfscope/scaling/scalers/fairseq_scaler.hpp>
#include <halfscope/scaling/scalers/headroom_scaler.hpp>
#include <halfscope/scaling/scalers/layerwise_scaler.hpp>
#include <halfscope/scaling/scalers/logmax_scaler.hpp>
#include <halfscope/scaling/scalers/popart_scaler.hpp>
#include <halfscope/scaling/scalers/static_scaler.hpp>

namespace halfscope {

/// `options` are those that it knows, with its own defaults: the published ones, where it is somebody's.
/// `make` takes a value for each.
struct ScalerEntry {
  std::string_view name;
  std::string_view summary;
  std::span<const ScalerOption> options;
  std::unique_ptr<LossScaler> (*make)(const ScalerSettings& options);
};

inline constexpr std::array static_options{ScalerOption{"initial_scale", 1}};

template <typename Scaler>
[[nodiscard]] std::unique_ptr<LossScaler> make(const ScalerSettings& options) {
  return std::make_unique<Scaler>(options);
}
[[nodiscard]] std::unique_ptr<LossScaler> make_unscaled(const ScalerSettings& options);
[[nodiscard]] std::unique_ptr<LossScaler> make_static(const ScalerSettings& options);

inline constexpr std::array scaler_table{
    ScalerEntry{"none", "no scaling", {}, make_unscaled},
    ScalerEntry{"static",
                "a constant: initial_scale, or give the number itself, such as 1024; never skips a step",
                static_options, make_static},
    ScalerEntry{"dynamic", "PyTorch's GradScaler: halve on overflow, double after growth_interval good steps",
                grad_scaler_options, make<BackoffScaler>},
    ScalerEntry{"apex_amp", "Apex amp: the same, at most 2^24", apex_amp_options, make<BackoffScaler>},
    ScalerEntry{"apex_fp16_utils", "Apex fp16_utils: from 2^32, doubles after 1000 good steps, at least 1",
                apex_fp16_utils_options, make<BackoffScaler>},
    ScalerEntry{"tensorflow", "TensorFlow's DynamicLossScale: from 2^15, at least 1", tensorflow_options,
                make<BackoffScaler>},
    ScalerEntry{"openseq2seq_backoff", "OpenSeq2Seq's Backoff: from 2^14, which is also the most",
                openseq2seq_backoff_options, make<BackoffScaler>},
    ScalerEntry{"megatron", "Megatron-LM: from 2^32, lowers after the second overflow since the last growth",
                megatron_options, make<BackoffScaler>},
    ScalerEntry{"apex_hysteresis", "Apex's update_scale_hysteresis: lowers after two overflows in a row",
                apex_hysteresis_options, make<BackoffScaler>},
    ScalerEntry{"deepspeed", "DeepSpeed: the first overflow is forgiven; fails at its floor",
                deepspeed_options, make<DeepSpeedScaler>},
    ScalerEntry{"deepspeed_consecutive",
                "DeepSpeed with consecutive_hysteresis: the first overflow in a row is forgiven",
                deepspeed_consecutive_options, make<DeepSpeedScaler>},
    ScalerEntry{"fairseq",
                "fairseq: lowers where the share of overflows passes a tolerance; fails at its floor",
                fairseq_options, make<FairseqScaler>},
    ScalerEntry{"openseq2seq_logmax", "OpenSeq2Seq's LogMax: from the statistics of log2 max|g|",
                openseq2seq_logmax_options, make<LogMaxScaler>},
    ScalerEntry{"popart",
                "PopART: moves every step, by the share of gradients in the upper eighth of the range",
                popart_options, make<PopartScaler>},
    ScalerEntry{"layerwise",
                "Zhao et al.: inside the backward pass, a power of two for each layer's gradient; no replay",
                layerwise_options, make<LayerwiseScaler>},
    ScalerEntry{"headroom",
                "ours: the largest scale that nothing of the last steps overflows at, less a margin",
                headroom_options, make<HeadroomScaler>},
};

/// Every option of the scaler with the value that it gets. Throws InvalidArgument for a setting of an option
/// that the scaler does not know, or an initial_scale that is not between min_scale and max_scale.
[[nodiscard]] ScalerSettings resolve_options(const ScalerEntry& scaler, const ScalerSettings& settings);

/// Throws as resolve_options does.
[[nodiscard]] std::unique_ptr<LossScaler> make_scaler(const ScalerEntry& scaler,
                                                      const ScalerSettings& settings);

}  // namespace halfscope
