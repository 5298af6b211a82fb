// Asks for the layer-wise adaptive scale, which is chosen inside the backward pass.
#pragma once

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

/// Zhao et al.'s defaults; the operand is never the loss, so its own scale begins, and stays, at 1.
inline constexpr std::array layerwise_options{
    ScalerOption{"initial_scale", 1}, ScalerOption{"underflow_share", LayerwiseOptions{}.underflow_share},
    ScalerOption{"layer_bound", LayerwiseOptions{}.scale_bound},
    ScalerOption{"carried_bound", LayerwiseOptions{}.carried_bound}};

/// The loss keeps a constant scale, and a step whose weight gradients are not finite is skipped: the rest is
/// `layerwise_scale` of every layer in every step, which remembers nothing.
class LayerwiseScaler final : public LossScaler {
 public:
  explicit LayerwiseScaler(const ScalerSettings& options)
      : LossScaler(options.at("initial_scale")),
        options_{.underflow_share = options.at("underflow_share"),
                 .scale_bound = options.at("layer_bound"),
                 .carried_bound = options.at("carried_bound")} {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }
  [[nodiscard]] std::optional<LayerwiseOptions> layerwise() const override { return options_; }

 private:
  void on_finite(const StepGradients& /*gradients*/) override {}
  void on_overflow() override {}

  LayerwiseOptions options_;
};

}  // namespace halfscope
