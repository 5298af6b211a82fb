// PopART's automatic loss scaling: by the share of the gradients in the upper eighth of FP16's range.
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {
namespace {

/// Elements of 65504/8 = 8188 or more, where the histogram counts in units of 2^unit_log2: 8188 is where the
/// class `ts` of the binade of 2^12 begins.
std::int64_t upper_count(const ExponentHistogram& histogram, int unit_log2) {
  const int binade = 12 - unit_log2;
  std::int64_t count = histogram.infinities() + histogram.nans() + histogram.binade(binade).rounds_to_normal;
  for (int exponent = binade + 1; exponent <= ExponentHistogram::last_exponent; ++exponent) {
    count += histogram.count(exponent);
  }
  return count;
}

class PopartScaler final : public LossScaler {
 public:
  explicit PopartScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::histogram; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;

  ScaleSteps steps_;
  double tolerance_;
};

PopartScaler::PopartScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")), steps_(options), tolerance_(options.at("tolerance")) {}

void PopartScaler::on_finite(const StepGradients& gradients) {
  const auto upper = static_cast<double>(upper_count(*gradients.histogram, gradients.histogram_log2));
  const auto all = static_cast<double>(gradients.histogram->elements());
  scale_ = upper > tolerance_ * all ? steps_.down(scale_) : steps_.up(scale_);
}

void PopartScaler::on_overflow() {
  scale_ = steps_.down(scale_);
}

}  // namespace

std::unique_ptr<LossScaler> make_popart(const ScalerSettings& options) {
  return std::make_unique<PopartScaler>(options);
}

}  // namespace halfscope
