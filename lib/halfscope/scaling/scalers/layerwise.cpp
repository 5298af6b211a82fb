// The layer-wise adaptive scale of Zhao et al. (arXiv:1910.12385), which is chosen inside the backward pass:
// this scaler asks for it, and `layerwise_scale` computes it for every layer in every step.
#include <halfscope/scaling/scalers.hpp>

namespace halfscope {
namespace {

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

}  // namespace

std::unique_ptr<LossScaler> make_layerwise(const ScalerSettings& options) {
  return std::make_unique<LayerwiseScaler>(options);
}

}  // namespace halfscope
