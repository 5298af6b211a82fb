// The loss scalers that have a name: one line per scaler.
#pragma once

#include <array>
#include <memory>

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

// The rules. Each takes a value for every option that its line in the table has.

/// A constant scale, 1 without an initial_scale.
[[nodiscard]] std::unique_ptr<LossScaler> make_static(const ScalerSettings& options);

/// An overflow spends one unit of hysteresis, 1 unless it is an option; once it is spent, every overflow
/// lowers the scale. After growth_interval steps without overflow the scale grows and the count of them
/// begins again. Growth refills the hysteresis; with consecutive_hysteresis every step without overflow does.
[[nodiscard]] std::unique_ptr<LossScaler> make_backoff(const ScalerSettings& options);

/// As `make_backoff`, but steps without overflow are counted from the last overflow and growth does not begin
/// the count again: the scale grows after growth_interval + 1 of them, then after every further
/// growth_interval. The last unit of hysteresis is never spent, so that after the first lowering every
/// overflow lowers. An overflow at min_scale throws RuntimeFailure, where DeepSpeed raises "already at
/// minimum".
[[nodiscard]] std::unique_ptr<LossScaler> make_deepspeed(const ScalerSettings& options);

/// The scale grows after every growth_interval steps without overflow. An overflow lowers it when the
/// overflows since the scale last moved are at least `tolerance` of the steps since then. A scale that would
/// reach min_scale stays and throws RuntimeFailure, where fairseq says that the loss is probably exploding.
/// fairseq tests the norm of all gradients; here every element is tested.
[[nodiscard]] std::unique_ptr<LossScaler> make_fairseq(const ScalerSettings& options);

/// x = log2 max|g|, unscaled, 16 when a gradient is not finite. With bias-corrected exponential means m of x
/// (decay 0.99) and s of x and x^2 (decay 0.999): S = 2^(16 - m - 3.09 sigma), which is seldom a power of
/// two. A step whose gradients are all zero is left out of the means.
[[nodiscard]] std::unique_ptr<LossScaler> make_logmax(const ScalerSettings& options);

/// Every step moves the scale: down when more than `tolerance` of the elements are 65504/8 or more in
/// magnitude or not finite, else up. It never rests, and needs no overflow. A step that overflows is skipped.
[[nodiscard]] std::unique_ptr<LossScaler> make_popart(const ScalerSettings& options);

/// The loss keeps a constant scale, and a step whose weight gradients are not finite is skipped: the rest is
/// `layerwise_scale` of every layer in every step, which remembers nothing.
[[nodiscard]] std::unique_ptr<LossScaler> make_layerwise(const ScalerSettings& options);

/// Every step has a limit: the largest power of two by which no weight gradient would have been rounded to
/// infinity, which the largest magnitude decides exactly. The scale is the smallest limit of the last
/// `history` steps, `margin` binades lower; it falls at once and rises only on a full history. An overflow
/// bounds its own step's limit. One that the history did not foresee (activation gradients are larger than
/// the weights', or a gradient grew by more than the margin in one step) widens the margin by a binade, and a
/// thousand steps without overflow take a binade back. `patience` steps in a row that overflow at min_scale
/// throw RuntimeFailure: no scale would help.
[[nodiscard]] std::unique_ptr<LossScaler> make_headroom(const ScalerSettings& options);

/// `options` are the rule's, with the scaler's own defaults: the published ones, when it is somebody's.
struct ScalerEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<LossScaler> (*make)(const ScalerSettings& options);
  ScalerDefaults options{};
};

inline constexpr std::array scaler_table{
    ScalerEntry{"none", "no scaling", make_static},
    ScalerEntry{"static",
                "a constant: initial_scale, or give the number itself, such as 1024; never skips a step",
                make_static,
                {{"initial_scale", 1}}},
    // torch.amp.GradScaler: no floor, and no ceiling but FP32's.
    ScalerEntry{"dynamic",
                "PyTorch's GradScaler: halve on overflow, double after growth_interval good steps",
                make_backoff,
                {{"initial_scale", 0x1p16},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 2000}}},
    // Its factor is 2 whatever it is told.
    ScalerEntry{
        "apex_amp",
        "Apex amp: the same, at most 2^24",
        make_backoff,
        {{"initial_scale", 0x1p16}, {"growth_interval", 2000}, {"min_scale", 0}, {"max_scale", 0x1p24}}},
    ScalerEntry{"apex_fp16_utils",
                "Apex fp16_utils: from 2^32, doubles after 1000 good steps, at least 1",
                make_backoff,
                {{"initial_scale", 0x1p32},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 1000},
                 {"min_scale", 1}}},
    ScalerEntry{"tensorflow",
                "TensorFlow's DynamicLossScale: from 2^15, at least 1",
                make_backoff,
                {{"initial_scale", 0x1p15},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 2000},
                 {"min_scale", 1}}},
    // Its sources leave the order of counting and comparing open: one step more or less.
    ScalerEntry{"openseq2seq_backoff",
                "OpenSeq2Seq's Backoff: from 2^14, which is also the most",
                make_backoff,
                {{"initial_scale", 0x1p14},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 2000},
                 {"min_scale", 1},
                 {"max_scale", 0x1p14}}},
    // Growth alone refills the hysteresis, so it counts overflows since the last growth, in a row or not.
    ScalerEntry{"megatron",
                "Megatron-LM: from 2^32, lowers after the second overflow since the last growth",
                make_backoff,
                {{"initial_scale", 0x1p32},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 1000},
                 {"min_scale", 1},
                 {"hysteresis", 2},
                 {"consecutive_hysteresis", 0}}},
    // As NeMo uses it.
    ScalerEntry{"apex_hysteresis",
                "Apex's update_scale_hysteresis: lowers after two overflows in a row",
                make_backoff,
                {{"initial_scale", 0x1p16},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 2000},
                 {"hysteresis", 2},
                 {"consecutive_hysteresis", 1}}},
    ScalerEntry{"deepspeed",
                "DeepSpeed: the first overflow is forgiven; fails at its floor",
                make_deepspeed,
                {{"initial_scale", 0x1p16},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 1000},
                 {"min_scale", 1},
                 {"hysteresis", 2},
                 {"consecutive_hysteresis", 0}}},
    ScalerEntry{"deepspeed_consecutive",
                "DeepSpeed with consecutive_hysteresis: the first overflow in a row is forgiven",
                make_deepspeed,
                {{"initial_scale", 0x1p16},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 1000},
                 {"min_scale", 1},
                 {"hysteresis", 2},
                 {"consecutive_hysteresis", 1}}},
    // The constants of its class; its command line starts at 2^7.
    ScalerEntry{"fairseq",
                "fairseq: lowers where the share of overflows passes a tolerance; fails at its floor",
                make_fairseq,
                {{"initial_scale", 0x1p15},
                 {"growth_factor", 2},
                 {"backoff_factor", 0.5},
                 {"growth_interval", 2000},
                 {"tolerance", 0},
                 {"min_scale", 1e-4}}},
    ScalerEntry{"openseq2seq_logmax",
                "OpenSeq2Seq's LogMax: from the statistics of log2 max|g|",
                make_logmax,
                {{"initial_scale", 1}, {"min_scale", 1}, {"max_scale", 0x1p14}}},
    // PopART's user gives the first scale; here it is GradScaler's.
    ScalerEntry{
        "popart",
        "PopART: moves every step, by the share of gradients in the upper eighth of the range",
        make_popart,
        {{"initial_scale", 0x1p16}, {"growth_factor", 2}, {"backoff_factor", 0.5}, {"tolerance", 1e-7}}},
    // Zhao et al.'s defaults; the loss itself is never scaled, so its scale begins, and stays, at 1.
    ScalerEntry{"layerwise",
                "Zhao et al.: inside the backward pass, a power of two for each layer's gradient; no replay",
                make_layerwise,
                {{"initial_scale", 1},
                 {"underflow_share", LayerwiseOptions{}.underflow_share},
                 {"layer_bound", LayerwiseOptions{}.scale_bound},
                 {"carried_bound", LayerwiseOptions{}.carried_bound}}},
    ScalerEntry{"headroom",
                "ours: the largest scale that nothing of the last steps overflows at, less a margin",
                make_headroom,
                {{"initial_scale", 0x1p16},
                 {"margin", 4},
                 {"history", 20},
                 {"min_scale", 1},
                 {"max_scale", 0x1p32},
                 {"patience", 10}}},
};

/// Every option of the scaler with the value that it gets. Throws InvalidArgument for a setting of an option
/// that the scaler does not know, or an initial_scale that is not between min_scale and max_scale.
[[nodiscard]] ScalerSettings resolve_options(const ScalerEntry& scaler, const ScalerSettings& settings);

/// The scaler called `name`; a number is a static one. Throws InvalidArgument for any other name, and for a
/// number that FP32 does not hold as a positive one.
[[nodiscard]] const ScalerEntry& find_scaler(const std::string& name);
/// The same for `find_scaler(name)`; a number is its initial_scale.
[[nodiscard]] ScalerSettings resolve_options(const std::string& name, ScalerSettings settings);

/// Throws as resolve_options does.
[[nodiscard]] std::unique_ptr<LossScaler> make_scaler(const ScalerEntry& scaler,
                                                      const ScalerSettings& settings);
/// The same for `find_scaler(name)`; a number is its initial_scale.
[[nodiscard]] std::unique_ptr<LossScaler> make_scaler(const std::string& name,
                                                      const ScalerSettings& settings = {});

}  // namespace halfscope
