// fairseq's dynamic loss scaler: lowers the scale when too large a share of the steps overflows.
#include <fmt/format.h>

#include <cmath>

#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {
namespace {

class FairseqScaler final : public LossScaler {
 public:
  explicit FairseqScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::finite; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;

  ScaleSteps steps_;
  double growth_interval_, tolerance_;
  double good_steps_ = 0;
  double steps_since_move_ = 0, overflows_since_move_ = 0;
};

FairseqScaler::FairseqScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")),
      steps_(options),
      growth_interval_(options.at("growth_interval")),
      tolerance_(options.at("tolerance")) {}

void FairseqScaler::on_finite(const StepGradients& /*gradients*/) {
  ++steps_since_move_;
  if (std::fmod(++good_steps_, growth_interval_) != 0) return;
  scale_ = steps_.up(scale_);
  steps_since_move_ = 0;  // and the overflows go on counting, as they do there
}

void FairseqScaler::on_overflow() {
  good_steps_ = 0;
  ++steps_since_move_;
  ++overflows_since_move_;
  if (overflows_since_move_ / steps_since_move_ < tolerance_) return;
  const double lowered = steps_.down(scale_);
  if (steps_.at_floor(lowered)) {
    throw RuntimeFailure(fmt::format(
        "fairseq: gradients overflow and the loss scale would reach its minimum of {:g}: the loss is "
        "probably exploding",
        lowered));
  }
  scale_ = lowered;
  steps_since_move_ = overflows_since_move_ = 0;
}

std::vector<ScalerNumber> FairseqScaler::counters() {
  return {{"good_steps", &good_steps_},
          {"steps_since_move", &steps_since_move_},
          {"overflows_since_move", &overflows_since_move_}};
}

}  // namespace

std::unique_ptr<LossScaler> make_fairseq(const ScalerSettings& options) {
  return std::make_unique<FairseqScaler>(options);
}

}  // namespace halfscope
