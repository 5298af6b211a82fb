// Collects the features of real and of made images.
#include "sim/models/parts/sample_distance.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/frechet_distance.hpp"
#include "sim/models/parts/initial.hpp"

namespace halfscope {
namespace {

/// Images of the sheet that a report shows.
constexpr std::int64_t sheet_size = 64;

/// Rows that come batch by batch.
class Rows {
 public:
  void add(const Array& rows) {
    shape_ = rows.shape();
    values_.insert(values_.end(), rows.values().begin(), rows.values().end());
  }
  [[nodiscard]] std::int64_t count() const {
    return shape_.empty() ? 0 : static_cast<std::int64_t>(values_.size() / row_size());
  }
  /// The first `most` of them.
  [[nodiscard]] Array first(std::int64_t most) const {
    Shape shape = shape_;
    shape.at(0) = std::min(most, count());
    Array rows(shape, Device::cpu);
    std::copy_n(values_.begin(), rows.size(), rows.data());
    return rows;
  }
  [[nodiscard]] Array all() const { return first(count()); }

 private:
  [[nodiscard]] std::size_t row_size() const {
    return element_count(shape_) / static_cast<std::size_t>(shape_[0]);
  }

  Shape shape_{};
  std::vector<float> values_{};
};

class SampleDistanceMetric final : public Metric {
 public:
  explicit SampleDistanceMetric(SampleDistance options) : options_(std::move(options)) {}

  void add(const Tape& tape, const BatchOutcome&, const Batch& batch) override {
    const std::int64_t count = batch.inputs.extent(0);
    const Array made = make_images(tape.caster(), count);
    finite_ = finite_ && std::ranges::all_of(made.values(), [](float x) { return std::isfinite(x); });
    real_.add(features(batch.inputs));
    made_.add(features(made));
    if (sheet_.count() < sheet_size) sheet_.add(made);
  }

  [[nodiscard]] double value() const override {
    if (!finite_) return std::nan("");
    const DeviceScope here(Device::cpu);
    return frechet_distance(real_.all(), made_.all());
  }

  [[nodiscard]] Array samples() const override {
    const DeviceScope here(Device::cpu);
    return sheet_.first(sheet_size);
  }

 private:
  /// The next images, in host memory.
  [[nodiscard]] Array make_images(const Caster& precision, std::int64_t count) const {
    TrackerList nobody;
    Caster caster(precision, nobody);
    Tape tape(caster, Phase::evaluation);
    const std::string name = "samples" + std::to_string(made_.count());
    Array noise(Shape{});
    {
      const DeviceScope here(Device::cpu);
      noise = normal_weights({count, options_.noise_size}, 1, 0, name);
    }
    return to_host_floats(tape.value(options_.generator(tape, noise.to(active_device()))));
  }

  /// In host memory, of images there.
  [[nodiscard]] Array features(const Array& images) const {
    TrackerList nobody;
    Caster caster(fp32_policy(), 0, nobody);
    caster.begin_step({});
    Tape tape(caster, Phase::evaluation);
    const TensorRef input = tape.input("input", images.to(active_device()));
    return to_host_floats(tape.value(features_of(tape, options_.judge, input)));
  }

  SampleDistance options_;
  Rows real_, made_, sheet_;
  bool finite_ = true;  ///< all made images
};

}  // namespace

std::unique_ptr<Metric> make_sample_distance(const SampleDistance& options) {
  return std::make_unique<SampleDistanceMetric>(options);
}

}  // namespace halfscope
