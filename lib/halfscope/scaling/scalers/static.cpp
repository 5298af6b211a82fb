// A constant loss scale that never skips a step, as the paper's section 3.2 starts from; 1 is no scaling at
// all.
#include <halfscope/scaling/scalers.hpp>

namespace halfscope {
namespace {

class StaticScaler final : public LossScaler {
 public:
  explicit StaticScaler(double scale) : LossScaler(scale) {}
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::none; }

 private:
  void on_finite(const StepGradients& /*gradients*/) override {}
  void on_overflow() override {}
};

}  // namespace

std::unique_ptr<LossScaler> make_static(const ScalerSettings& options) {
  return std::make_unique<StaticScaler>(option_or(options, "initial_scale", 1));
}

}  // namespace halfscope
