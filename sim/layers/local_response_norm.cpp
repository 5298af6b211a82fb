// Forward and backward of local response normalisation, made of sums over shifted copies of the channels.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

/// (size, shape of x): copy j holds of each channel c the channel c + j - size / 2, or 0 where there is none.
Array channel_windows(const Array& x, std::int64_t size) {
  const std::int64_t channels = x.shape().back(), elements = static_cast<std::int64_t>(x.size());
  Array windows = Array::zeros({size, elements}, x.dtype());
  for (std::int64_t j = 0; j < size; ++j) {
    const std::int64_t shift = j - size / 2, before = std::max<std::int64_t>(0, -shift),
                       from = std::max<std::int64_t>(0, shift);
    const std::int64_t count = channels - before - from;
    if (count <= 0) continue;
    copy_columns({elements / channels, count}, {x.view(), from, channels},
                 {windows.view(), j * elements + before, channels});
  }
  return windows;
}

/// The sums over the windows of each number's channel: of the numbers, or of their squares.
Array window_sums(const CastScope& casts, const std::string& layer, const std::string& tensor,
                  const Array& windows, Term term) {
  Array sums({windows.extent(1)});
  const ColumnTerms terms{.term = term,
                          .x = ElementReader(windows.view()),
                          .y = term == Term::product ? ElementReader(windows.view()) : ElementReader{},
                          .rows = windows.extent(0),
                          .columns = windows.extent(1)};
  casts.sum_columns(layer + "." + tensor, terms, casts.policy().reductions_in(layer), sums.values());
  return sums;
}

/// e^(exponent log), the base's power.
Array power(const Array& log, float exponent) {
  Array y(log.shape());
  scale(log.values(), exponent, y.values());
  apply(Elementary::exp, y.values(), y.values());
  return y;
}

/// log(k + alpha sum), which becomes of `sums`.
Array log_of_base(Array sums, const LocalResponse& response, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  const auto k = Memory<float>::from(std::vector<float>(count, response.k));
  scale(sums.values(), response.alpha, sums.values());
  add_to_rows(k.values(), sums.values());
  apply(Elementary::log, sums.values(), sums.values());
  return sums;
}

void check(const std::string& name, const Shape& x, const LocalResponse& response) {
  if (x.empty() || element_count(x) == 0)
    throw InvalidArgument("layer " + name + ": input " + to_string(x) + " has no channels");
  if (response.size >= 1 && response.size % 2 == 1 && response.k > 0 && response.alpha >= 0) return;
  throw InvalidArgument(fmt::format(
      "layer {}: local response over {} channels with k {} and alpha {}: give an odd number of channels, k "
      "above 0 and alpha of 0 or more",
      name, response.size, static_cast<double>(response.k), static_cast<double>(response.alpha)));
}

}  // namespace

TensorRef local_response_norm(Tape& tape, const std::string& name, TensorRef x,
                              const LocalResponse& response) {
  const Operation operation = tape.operation("local_response_norm", name, {&x});
  const Array& input = tape.value(x);
  check(name, input.shape(), response);
  Array squares =
      window_sums(operation.casts(), name, "squares", channel_windows(input, response.size), Term::product);
  const auto log_base =
      std::make_shared<Array>(log_of_base(std::move(squares), response, input.shape().back()));
  Array y(input.shape());
  combine(Combination::product, input.view(), power(*log_base, -response.beta).view(), y.values());

  const auto backward = [x, name, response, log_base](BackwardScope& scope, Array gradient) {
    const Array& used = scope.value(x);
    gradient = to_dtype(std::move(gradient), DType::f32);
    Array inner(
        used.shape());  // gradient x base^(-beta - 1), whose sum over a window a number's square feeds
    combine(Combination::product, gradient.values(), used.view(), inner.values());
    combine(Combination::product, inner.values(), power(*log_base, -response.beta - 1).view(),
            inner.values());
    Array through_base =
        window_sums(scope.casts(), name, "gradient", channel_windows(inner, response.size), Term::value);
    combine(Combination::product, through_base.values(), used.view(), through_base.values());
    scale(through_base.values(), -2 * response.alpha * response.beta, through_base.values());
    Array x_gradient(used.shape());
    combine(Combination::product, gradient.values(), power(*log_base, -response.beta).view(),
            x_gradient.values());
    add(through_base.values(), x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
