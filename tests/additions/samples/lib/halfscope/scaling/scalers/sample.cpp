// A loss scaler as a newcomer would add it: halves on overflow, never grows.
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {
namespace {

class SampleScaler final : public LossScaler {
 public:
  explicit SampleScaler(const ScalerSettings& options)
      : LossScaler(options.at("initial_scale")), steps_(options) {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }

 private:
  void on_finite(const StepGradients& /*gradients*/) override {}
  void on_overflow() override { scale_ = steps_.down(scale_); }

  ScaleSteps steps_;
};

}  // namespace

std::unique_ptr<LossScaler> make_sample_scaler(const ScalerSettings& options) {
  return std::make_unique<SampleScaler>(options);
}

}  // namespace halfscope
