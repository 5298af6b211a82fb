// Counts right answers.
#include "sim/models/parts/accuracy.hpp"

#include <algorithm>

namespace halfscope {
namespace {

class Accuracy final : public Metric {
 public:
  void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) override {
    const Array logits = to_host_floats(tape.value(outcome.predictions.at(0)));
    const std::size_t classes = logits.size() / batch.labels.size();
    for (std::size_t r = 0; r < batch.labels.size(); ++r) {
      const float* row = logits.data() + r * classes;
      if (std::max_element(row, row + classes) - row == batch.labels[r]) ++correct_;
    }
    total_ += static_cast<std::int64_t>(batch.labels.size());
  }

  [[nodiscard]] double value() const override {
    return 100 * static_cast<double>(correct_) / static_cast<double>(total_);
  }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

}  // namespace

std::unique_ptr<Metric> make_accuracy() {
  return std::make_unique<Accuracy>();
}

}  // namespace halfscope
