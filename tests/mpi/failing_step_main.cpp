// One of two processes of a training whose steps fail: it fails, or waits in the step for one that does.
//
//   failing_step DATA FOLDER    the first process, whose training into FOLDER fails in its first step
//   failing_step DATA           a process that is in the middle of a step; the first has ordered one that
//   fails
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/data/datasets.hpp"
#include "sim/train/build.hpp"
#include "sim/train/processes.hpp"
#include "sim/train/run.hpp"
#include "sim/train/worker.hpp"

using namespace halfscope;

namespace {

RunSettings settings_of(const char* model, const char* data) {
  TrainConfig config;
  config.model = model;
  config.data = data;
  config.parts.ranks = 2;
  config.batch = 4;
  config.steps = 1;
  return parsed(config);
}

std::unique_ptr<Dataset> dataset_of(const RunSettings& settings) {
  return open_dataset(settings.config.dataset, dataset_spec(settings.config));
}

/// A data set of whose training examples only the first can be read, from which a run's memory is told.
class LostExamples final : public Dataset {
 public:
  explicit LostExamples(const RunSettings& settings) : whole_(dataset_of(settings)) {}
  [[nodiscard]] std::int64_t size(Split split) const override { return whole_->size(split); }
  [[nodiscard]] Shape example_shape() const override { return whole_->example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return whole_->class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    const bool first = std::ranges::all_of(indices, [](std::int64_t index) { return index == 0; });
    if (split == Split::train && !first) throw RuntimeFailure("the examples are lost");
    return whole_->batch(split, indices);
  }

 private:
  std::unique_ptr<Dataset> whole_;
};

void fail_in_step(const char* data, const char* results) {
  const RunSettings settings = settings_of("cnn_bn", data);
  run_training(settings, LostExamples(settings), RunFolder(results, {"failing", "fp32", 0}),
               [](const StepRecord&) {});
}

/// unet on images without a label for each pixel: it is built, and a step throws.
void order_failing_step(const char* data) {
  const RunSettings settings = settings_of("unet", data);
  const auto dataset = dataset_of(settings);
  Trainer trainer(settings, *dataset);
  Workers(settings, trainer).step();
}

void follow_orders() {
  for (const std::string_view awaited : {"begin", "step"}) {
    std::string order;
    broadcast(order);
    if (!order.starts_with(awaited)) throw RuntimeFailure("an order that nobody awaits: " + order);
  }
}

void wait_in_step(const char* data) {
  process_index() == 0 ? order_failing_step(data) : follow_orders();
  std::array<std::int64_t, 1> sum{};
  sum_over_processes(sum);
}

}  // namespace

int main(int count, char** words) {
  const ProcessGroup group;
  try {
    count > 2 ? fail_in_step(words[1], words[2]) : wait_in_step(words[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "failing_step: %s\n", error.what());
    return 1;
  }
}
