// A model: parameters, the forward pass to a loss, and the metric by which it is judged.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/data/dataset.hpp"
#include "sim/options/entry_options.hpp"
#include "sim/tape/parameter.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

/// Results of one batch.
struct BatchOutcome {
  TensorRef loss;                           ///< a scalar: the mean over the batch's predictions
  std::vector<TensorRef> predictions = {};  ///< tensors that the model's metric reads
  /// Boxes from which a detector's offsets start, one per row of its predictions, those of the first image
  /// first; empty: the anchors that its metric knows.
  std::vector<Box> starts = {};
};

/// Judges a model over a test set, batch by batch.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) = 0;
  /// The metric of everything added so far, in its own unit.
  [[nodiscard]] virtual double value() const = 0;
  /// The share of right predictions in percent, where `value` is something else and that is known.
  [[nodiscard]] virtual std::optional<double> accuracy() const { return std::nullopt; }
  /// The value of a model whose mean loss is `loss`, for a metric that is a function of it.
  [[nodiscard]] virtual std::optional<double> at_loss(double /*loss*/) const { return std::nullopt; }
  /// Images (count, height, width, channels) that the model has made, the first of its own draws; empty of a
  /// model that makes none.
  [[nodiscard]] virtual Array samples() const { return {}; }
};

/// A further loss of each training step, with the weights that learn from it; all others are constants in it.
/// Its forward pass begins after the update from the loss before it.
struct Objective {
  std::string name;
  std::unique_ptr<ParameterStore> store;
  std::function<TensorRef(Tape& tape, const Batch& batch)> loss;  ///< owns references into stores alone
};

struct Model {
  std::unique_ptr<ParameterStore> store;
  /// Runs the batch forward on the tape; owns nothing but references into `store`.
  std::function<BatchOutcome(Tape& tape, const Batch& batch)> forward;
  std::function<std::unique_ptr<Metric>()> make_metric;
  /// Weights that training leaves alone, for `forward` and the metric; null of a model without.
  std::unique_ptr<ParameterStore> teacher = nullptr;
  std::vector<Objective> further = {};  ///< losses of a step behind that of `forward`
};

/// Whether a new model's weights are numbers: a question about its shapes needs none, nor the time to draw
/// millions.
enum class InitialWeights : std::uint8_t { drawn, unset };

/// Data and options that a model is built for.
struct ModelSpec {
  Shape example_shape;  // as the data set's
  std::int64_t class_count = 0;
  std::int64_t token_count = 0;  ///< tokens of a text that the model reads
  TextLabels text_labels = TextLabels::next_words;
  std::uint64_t seed = 0;  ///< seed of the initial weights
  OptionValues options{};  ///< the model's; an option that is left out has its default
  InitialWeights initial = InitialWeights::drawn;
  std::shared_ptr<const SafetensorsFile> teacher = nullptr;  ///< weights of the model to learn from

  [[nodiscard]] std::int64_t whole(const EntryOption& option) const {
    return static_cast<std::int64_t>(value_of(option, options));
  }
  [[nodiscard]] float fp32(const EntryOption& option) const {
    return static_cast<float>(value_of(option, options));
  }
};

/// A model as its own file defines it.
struct ModelKind {
  Model (*make)(const ModelSpec& spec);
  OptionTable options{};
};

}  // namespace halfscope
