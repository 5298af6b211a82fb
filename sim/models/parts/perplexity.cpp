// Averages the losses over predictions, and counts right ones.
#include "sim/models/parts/perplexity.hpp"

#include <halfscope/arithmetic/elementary.hpp>

#include "sim/models/parts/accuracy.hpp"

namespace halfscope {
namespace {

double perplexity_at(double loss) {
  return static_cast<double>(exp(static_cast<float>(loss)));
}

class Perplexity final : public Metric {
 public:
  void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) override {
    const auto predictions = static_cast<double>(batch.labels.size());
    sum_ += static_cast<double>(tape.value(outcome.loss).item()) * predictions;
    total_ += predictions;
    right_->add(tape, outcome, batch);
  }

  [[nodiscard]] double value() const override { return perplexity_at(sum_ / total_); }

  [[nodiscard]] std::optional<double> at_loss(double loss) const override { return perplexity_at(loss); }

  [[nodiscard]] std::optional<double> accuracy() const override { return right_->value(); }

 private:
  double sum_ = 0, total_ = 0;
  std::unique_ptr<Metric> right_ = make_accuracy();
};

}  // namespace

std::unique_ptr<Metric> make_perplexity() {
  return std::make_unique<Perplexity>();
}

}  // namespace halfscope
