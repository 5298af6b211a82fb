// Forward and backward of batch normalisation.
#include "sim/layers/layers.hpp"

#include "lib/nn/batch_norm.hpp"

#include "sim/layers/reduction.hpp"

namespace halfscope {
namespace {

struct Statistics {
  Array mean;
  Array variance;
};

Statistics batch_statistics(const CastScope& casts, const std::string& name, const Array& x,
                            std::int64_t rows) {
  ColumnTerms terms{.x = ElementReader(x.view()), .rows = rows, .columns = x.shape().back()};
  Statistics statistics{mean_of(reduce(casts, name, "mean", terms), rows), {}};
  terms.term = Term::squared_deviation;
  terms.center = statistics.mean.data();
  statistics.variance = mean_of(reduce(casts, name, "variance", terms), rows);
  return statistics;
}

/// running += momentum * (batch - running); the running variance is the unbiased one, as is usual.
void update_running_statistics(const BatchNormParameters& parameters, const Statistics& statistics,
                               std::int64_t rows) {
  const float unbiased = rows > 1 ? static_cast<float>(rows) / static_cast<float>(rows - 1) : 1.0f;
  const float momentum = parameters.running_momentum;
  update_running({.batch = statistics.mean.values(), .momentum = momentum},
                 parameters.running_mean.value.values());
  update_running({.batch = statistics.variance.values(), .factor = unbiased, .momentum = momentum},
                 parameters.running_variance.value.values());
}

Array inverse_deviation(const Array& variance, float epsilon) {
  Array result(variance.shape());
  inverse_deviations(variance.values(), epsilon, result.values());
  return result;
}

/// Results of forward that backward needs. For an x of 16 bits the normalised numbers, of 32, are computed
/// anew.
struct SavedBatchNorm {
  Array normalised;         // the shape of x, or empty
  Array mean;               // (channels)
  Array inverse_deviation;  // (channels)
};

Array normalised_again(const Array& x, const SavedBatchNorm& saved, const FloatsOf& gamma) {
  Array normalised(x.shape());
  normalise(x.view(), {saved.mean.values(), saved.inverse_deviation.values(), gamma.values(), {}},
            normalised.values(), {});
  return normalised;
}

}  // namespace

TensorRef batch_norm(Tape& tape, const std::string& name, TensorRef x,
                     const BatchNormParameters& parameters) {
  const Operation operation = tape.operation("batch_norm", name, {&x});
  const TensorRef gamma = operation.parameter(parameters.gamma);
  const TensorRef beta = operation.parameter(parameters.beta);
  const Array& input = tape.value(x);
  const std::int64_t channels = input.shape().back();
  const std::int64_t rows = static_cast<std::int64_t>(input.size()) / channels;
  if (channels != tape.value(gamma).extent(0)) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input.shape()) +
                          " has not the channels of gamma " + to_string(tape.value(gamma).shape()));
  }
  Statistics statistics;
  if (tape.phase() == Phase::training) {
    statistics = batch_statistics(operation.casts(), name, input, rows);
    if (!tape.recomputing()) update_running_statistics(parameters, statistics, rows);
  } else {
    statistics = {parameters.running_mean.value.clone(), parameters.running_variance.value.clone()};
  }
  auto saved = std::make_shared<SavedBatchNorm>(SavedBatchNorm{
      {}, std::move(statistics.mean), inverse_deviation(statistics.variance, parameters.epsilon)});
  if (input.dtype() == DType::f32) saved->normalised = Array(input.shape());
  Array y(input.shape());
  const FloatsOf scale = tape.floats(gamma), shift = tape.floats(beta);
  normalise(input.view(),
            {std::as_const(saved->mean).values(), std::as_const(saved->inverse_deviation).values(),
             scale.values(), shift.values()},
            saved->normalised.values(), y.values());

  const auto backward = [name, x, gamma, beta, rows, channels, saved](BackwardScope& scope, Array gradient) {
    const FloatsOf gains = scope.floats(gamma);
    const bool again = saved->normalised.empty();
    if (again) saved->normalised = normalised_again(scope.value(x), *saved, gains);
    ColumnTerms terms{.x = ElementReader(std::as_const(gradient).view()), .rows = rows, .columns = channels};
    Array beta_gradient = reduce(scope.casts(), name, "beta_gradient", terms);
    terms.term = Term::product;
    terms.y = saved->normalised.data();
    Array gamma_gradient = reduce(scope.casts(), name, "gamma_gradient", terms);
    const Array mean = mean_of(beta_gradient.clone(), rows);
    const Array mean_normalised = mean_of(gamma_gradient.clone(), rows);
    gradient = to_dtype(std::move(gradient), DType::f32);
    normalise_gradient(saved->normalised.values(),
                       {{}, saved->inverse_deviation.values(), gains.values(), {}},
                       {mean.values(), mean_normalised.values()}, gradient.values());
    if (again) saved->normalised = {};
    scope.add_gradient(gamma, std::move(gamma_gradient));
    scope.add_gradient(beta, std::move(beta_gradient));
    scope.add_gradient(x, std::move(gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
