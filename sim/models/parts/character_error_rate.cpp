// Decodes greedily and counts edits.
#include "sim/models/parts/character_error_rate.hpp"

#include <algorithm>
#include <numeric>

#include "lib/nn/ctc.hpp"

namespace halfscope {
namespace {

class CharacterErrorRate final : public Metric {
 public:
  explicit CharacterErrorRate(std::int64_t stride) : stride_(stride) {}

  void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) override {
    const Array logits = tape.value(outcome.predictions.at(0)).to(Device::cpu);
    const FloatsOf floats(logits);
    const auto utterances = static_cast<std::size_t>(logits.extent(1)),
               labels = static_cast<std::size_t>(logits.extent(2));
    std::size_t first = 0;
    for (std::size_t b = 0; b < utterances; ++b) {
      std::vector<std::span<const float>> frames;
      const auto steps = static_cast<std::size_t>((batch.lengths[b] + stride_ - 1) / stride_);
      for (std::size_t t = 0; t < steps; ++t)
        frames.push_back(floats.values().subspan((t * utterances + b) * labels, labels));
      const auto count = static_cast<std::size_t>(batch.label_counts[b]);
      edits_ += edit_distance(greedy_labels(frames), std::span(batch.labels).subspan(first, count));
      first += count;
    }
    characters_ += static_cast<std::int64_t>(first);
  }

  [[nodiscard]] double value() const override {
    return 100 * static_cast<double>(edits_) / static_cast<double>(characters_);
  }

 private:
  std::int64_t stride_;
  std::int64_t edits_ = 0, characters_ = 0;
};

}  // namespace

std::vector<std::int32_t> greedy_labels(const std::vector<std::span<const float>>& frames) {
  std::vector<std::int32_t> labels;
  std::int32_t before = ctc_blank;
  for (const std::span<const float> frame : frames) {
    const auto likeliest = static_cast<std::int32_t>(std::ranges::max_element(frame) - frame.begin());
    if (likeliest != ctc_blank && likeliest != before) labels.push_back(likeliest);
    before = likeliest;
  }
  return labels;
}

std::int64_t edit_distance(std::span<const std::int32_t> from, std::span<const std::int32_t> to) {
  std::vector<std::int64_t> row(to.size() +
                                1);  // edits from the first i numbers of `from` to each beginning of `to`
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::int64_t diagonal = std::exchange(row[0], static_cast<std::int64_t>(i) + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::int64_t substituted = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::unique_ptr<Metric> make_character_error_rate(std::int64_t stride) {
  return std::make_unique<CharacterErrorRate>(stride);
}

}  // namespace halfscope
