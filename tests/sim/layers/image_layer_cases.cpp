// The layers of detectors and segmentations, and naive loops that say what each should give.
#include <cmath>

#include "sim/layers/layers.hpp"
#include "sim/layers/predictions.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::image_layer_cases {
namespace {

void nothing(ParameterStore& /*store*/) {}

/// Rows 4 and 0 of six have targets; differences up to 4, so that both branches are taken.
RowTargets some_targets() {
  return {.rows = {4, 0}, .values = uniform_array({2, 3}, -2, 2, 5), .denominator = 7};
}

double smooth_l1_of(const Array& x) {
  const RowTargets targets = some_targets();
  double sum = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const auto at = static_cast<std::size_t>(targets.rows[i / 3]) * 3 + i % 3;
    const double d = std::fabs(static_cast<double>(x[at]) - static_cast<double>(targets.values[i]));
    sum += d < 1 ? d * d / 2 : d - 0.5;
  }
  return sum / 7;
}

double binary_cross_entropy_of(const Array& x, const Array& targets) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(x[i]))), t = static_cast<double>(targets[i]);
    sum -= t * std::log(p) + (1 - t) * std::log(1 - p);
  }
  return sum / static_cast<double>(x.size());
}

/// x (2, 2, 3, 2) enlarged three times.
std::vector<double> enlarged(const Array& x) {
  std::vector<double> y;
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t r = 0; r < 6; ++r)
      for (std::size_t c = 0; c < 9; ++c)
        for (std::size_t k = 0; k < 2; ++k)
          y.push_back(static_cast<double>(x[((n * 2 + r / 3) * 3 + c / 3) * 2 + k]));
  return y;
}

/// a (..., 2) beside b (..., 3).
std::vector<double> side_by_side(const Array& a, const Array& b) {
  std::vector<double> y;
  for (std::size_t r = 0; r < a.size() / 2; ++r) {
    for (std::size_t c = 0; c < 2; ++c) y.push_back(static_cast<double>(a[r * 2 + c]));
    for (std::size_t c = 0; c < 3; ++c) y.push_back(static_cast<double>(b[r * 3 + c]));
  }
  return y;
}

/// a (..., 2) on either side of b (..., 3).
std::vector<double> twice_around(const Array& a, const Array& b) {
  std::vector<double> y;
  for (std::size_t r = 0; r < a.size() / 2; ++r) {
    for (const float x :
         {a[2 * r], a[2 * r + 1], b[3 * r], b[3 * r + 1], b[3 * r + 2], a[2 * r], a[2 * r + 1]})
      y.push_back(static_cast<double>(x));
  }
  return y;
}

/// Numbers 1 and 2 of predictions of 4, from maps (2, 2, 1, 8) and (2, 1, 1, 4): 4 + 1 predictions an image.
std::vector<double> predictions(const Array& first, const Array& second) {
  std::vector<double> y;
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t p = 0; p < 5; ++p)
      for (std::size_t k = 1; k < 3; ++k)
        y.push_back(static_cast<double>(p < 4 ? first[n * 16 + p * 4 + k] : second[n * 4 + k]));
  }
  return y;
}

/// x (2, 3, 4, 3).
std::vector<double> means(const Array& x) {
  std::vector<double> y(6);
  for (std::size_t i = 0; i < x.size(); ++i) y[i / 36 * 3 + i % 3] += static_cast<double>(x[i]) / 12;
  return y;
}

std::vector<LayerCase> losses() {
  return {{"smooth_l1",
           {6, 3},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) { return smooth_l1(t, "y", x, some_targets()); },
           [](const ParameterStore& s) { return std::vector{smooth_l1_of(master(s, 0))}; }},
          {"sigmoid_cross_entropy",
           {3, 5},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) {
             return sigmoid_cross_entropy(t, "y", x, uniform_array({3, 5}, 0, 1, 5));
           },
           [](const ParameterStore& s) {
             return std::vector{binary_cross_entropy_of(master(s, 0), uniform_array({3, 5}, 0, 1, 5))};
           }},
          {"total_loss",
           {6, 3},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) {
             const TensorRef first = smooth_l1(t, "first", x, some_targets());
             const std::array both{first, sigmoid_cross_entropy(t, "second", x, Array::zeros({6, 3}))};
             return total_loss(t, "y", both);
           },
           [](const ParameterStore& s) {
             return std::vector{smooth_l1_of(master(s, 0)) +
                                binary_cross_entropy_of(master(s, 0), Array::zeros({6, 3}))};
           }},
          {"total_loss of losses with weights, one of them twice",
           {6, 3},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) {
             const TensorRef first = smooth_l1(t, "first", x, some_targets());
             const TensorRef second = sigmoid_cross_entropy(t, "second", x, Array::zeros({6, 3}));
             return total_loss(
                 t, "y",
                 std::array{WeightedLoss{first}, WeightedLoss{second, 0.3f}, WeightedLoss{second, -2}});
           },
           [](const ParameterStore& s) {
             return std::vector{smooth_l1_of(master(s, 0)) -
                                1.7 * binary_cross_entropy_of(master(s, 0), Array::zeros({6, 3}))};
           }}};
}

std::vector<LayerCase> shapes() {
  return {{"upsample_nearest",
           {2, 2, 3, 2},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) { return upsample_nearest(t, "y", x, 3); },
           [](const ParameterStore& s) { return enlarged(master(s, 0)); }},
          {"concat_channels",
           {2, 3, 1, 2},
           [](ParameterStore& s) {
             s.add("other", uniform_array({2, 3, 1, 3}, -1, 1, 2));
           },
           [](Tape& t, TensorRef x, ParameterStore& s) {
             return concat_channels(t, "y", x, leaf(t, parameter(s, 1)));
           },
           [](const ParameterStore& s) { return side_by_side(master(s, 0), master(s, 1)); }},
          {"concat_channels of three, one of them twice",
           {2, 3, 1, 2},
           [](ParameterStore& s) {
             s.add("other", uniform_array({2, 3, 1, 3}, -1, 1, 2));
           },
           [](Tape& t, TensorRef x, ParameterStore& s) {
             return concat_channels(t, "y", std::array{x, leaf(t, parameter(s, 1)), x});
           },
           [](const ParameterStore& s) { return twice_around(master(s, 0), master(s, 1)); }},
          {"add_residual",
           {2, 3, 1, 2},
           [](ParameterStore& s) {
             s.add("shortcut", uniform_array({2, 3, 1, 2}, -1, 1, 2));
           },
           [](Tape& t, TensorRef x, ParameterStore& s) {
             return add_residual(t, "y", x, leaf(t, parameter(s, 1)));
           },
           [](const ParameterStore& s) {
             std::vector<double> y;
             for (std::size_t i = 0; i < 12; ++i) {
               y.push_back(static_cast<double>(master(s, 0)[i]) + static_cast<double>(master(s, 1)[i]));
             }
             return y;
           }},
          {"add_residual of a tensor and itself",
           {3, 2},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) { return add_residual(t, "y", x, x); },
           [](const ParameterStore& s) {
             std::vector<double> y;
             for (const float x : master(s, 0).values()) y.push_back(2 * static_cast<double>(x));
             return y;
           }},
          {"gather_predictions",
           {2, 2, 1, 8},
           [](ParameterStore& s) {
             s.add("second", uniform_array({2, 1, 1, 4}, -1, 1, 2));
           },
           [](Tape& t, TensorRef x, ParameterStore& s) {
             const std::array maps{x, leaf(t, parameter(s, 1))};
             return gather_predictions(t, "y", maps, {.size = 4, .first = 1, .count = 2});
           },
           [](const ParameterStore& s) { return predictions(master(s, 0), master(s, 1)); }},
          {"global_average_pool",
           {2, 3, 4, 3},
           nothing,
           [](Tape& t, TensorRef x, ParameterStore&) { return global_average_pool(t, "y", x); },
           [](const ParameterStore& s) { return means(master(s, 0)); }}};
}

std::vector<LayerCase> cases() {
  std::vector<LayerCase> all;
  for (auto& group : {losses(), shapes()}) all.insert(all.end(), group.begin(), group.end());
  return all;
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::image_layer_cases
