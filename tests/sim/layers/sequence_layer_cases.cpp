// The layers that sequences go through, one line per layer; parameter 0 is the input.
#include <halfscope/core/random.hpp>

#include "sim/layers/layers.hpp"
#include "tests/reference/layers.hpp"
#include "tests/reference/recurrent.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::sequence_layer_cases {
namespace {

const std::vector<std::int32_t> tokens{3, 0, 3, 2, 3, 0};

RecurrentParameters recurrent_parameters(ParameterStore& s) {
  return {parameter(s, 1), parameter(s, 2), parameter(s, 3), parameter(s, 4)};
}

LayerCase recurrent_case(std::string name, std::int64_t gates, decltype(gru)* layer,
                         std::vector<double> (*reference)(const reference::Recurrent&)) {
  constexpr std::int64_t in = 3, hidden = 5;
  return {
      std::move(name),
      {4, 2, in},
      [gates](ParameterStore& s) {
        s.add("input_weight", uniform_array({in, gates * hidden}, -1, 1, 2));
        s.add("input_bias", uniform_array({gates * hidden}, -1, 1, 3));
        s.add("hidden_weight", uniform_array({hidden, gates * hidden}, -1, 1, 4));
        s.add("hidden_bias", uniform_array({gates * hidden}, -1, 1, 5));
      },
      [layer](Tape& t, TensorRef x, ParameterStore& s) { return layer(t, "y", x, recurrent_parameters(s)); },
      [reference](const ParameterStore& s) {
        return reference({master(s, 0), master(s, 1), master(s, 2), master(s, 3), master(s, 4)});
      }};
}

LayerCase projected_case() {
  constexpr std::int64_t in = 3, hidden = 5, state = 2;
  return {"projected_lstm",
          {4, 2, in},
          [](ParameterStore& s) {
            s.add("input_weight", uniform_array({in, 4 * hidden}, -1, 1, 2));
            s.add("input_bias", uniform_array({4 * hidden}, -1, 1, 3));
            s.add("hidden_weight", uniform_array({state, 4 * hidden}, -1, 1, 4));
            s.add("hidden_bias", uniform_array({4 * hidden}, -1, 1, 5));
            s.add("projection", uniform_array({hidden, state}, -1, 1, 6));
          },
          [](Tape& t, TensorRef x, ParameterStore& s) {
            return projected_lstm(t, "y", x, recurrent_parameters(s), parameter(s, 5));
          },
          [](const ParameterStore& s) {
            return reference::lstm(
                {master(s, 0), master(s, 1), master(s, 2), master(s, 3), master(s, 4), &master(s, 5)});
          }};
}

const std::vector<std::int32_t> sampled_labels{4, 0, 4}, samples{1, 3};

/// Logits of three rows beside two samples of a vocabulary of five words.
LayerCase sampled_case() {
  constexpr std::int64_t rows = 3, width = 4, vocabulary = 5;
  const auto words = [] {
    std::vector<std::int32_t> all = sampled_labels;
    all.insert(all.end(), samples.begin(), samples.end());
    return all;
  };
  const auto corrections = std::vector<float>{-0.5f, -1, -0.5f, -2, -0.25f};
  return {"sampled_logits",
          {rows, width},
          [](ParameterStore& s) {
            s.add("weight", uniform_array({vocabulary, width}, -1, 1, 2));
            s.add("bias", uniform_array({vocabulary, 1}, -1, 1, 3));
          },
          [=](Tape& t, TensorRef x, ParameterStore& s) {
            const std::vector<std::int32_t> all = words();
            const Tokens gathered{all, {std::ssize(all)}};
            return sampled_logits(t, "y", x,
                                  {.weights = embedding(t, "weights", gathered, parameter(s, 1)),
                                   .biases = embedding(t, "biases", gathered, parameter(s, 2)),
                                   .labels = sampled_labels,
                                   .samples = samples,
                                   .correction = corrections});
          },
          [=](const ParameterStore& s) {
            const std::vector<std::int32_t> all = words();
            std::vector<double> y;
            const auto add = [&](std::size_t row, std::size_t place) {
              const auto word = static_cast<std::size_t>(all[place]);
              double logit = static_cast<double>(master(s, 2)[word] - corrections[place]);
              for (std::size_t i = 0; i < width; ++i)
                logit += static_cast<double>(master(s, 0)[row * width + i]) *
                         static_cast<double>(master(s, 1)[word * width + i]);
              y.push_back(logit);
            };
            for (std::size_t row = 0; row < rows; ++row) {
              add(row, row);
              for (std::size_t j = 0; j < samples.size(); ++j) add(row, rows + j);
            }
            return y;
          }};
}

std::vector<LayerCase> cases() {
  return {
      recurrent_case("rnn", 1, rnn, reference::rnn),
      recurrent_case("gru", 3, gru, reference::gru),
      recurrent_case("lstm", 4, lstm, reference::lstm),
      projected_case(),
      sampled_case(),
      {"linear_transposed over time",
       {3, 2, 5},
       [](ParameterStore& s) {
         s.add("w", uniform_array({4, 5}, -1, 1, 2));
         s.add("b", uniform_array({4, 1}, -1, 1, 3));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         return linear_transposed(t, "y", x, {parameter(s, 1), parameter(s, 2)});
       },
       [](const ParameterStore& s) {
         Array rows = master(s, 0).clone(), weight({5, 4});
         rows.reshape({6, 5});
         for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = master(s, 1)[i % 4 * 5 + i / 4];
         return reference::linear(rows, weight, master(s, 2));
       }},
      {"linear over time",
       {3, 2, 5},
       [](ParameterStore& s) {
         s.add("w", uniform_array({5, 4}, -1, 1, 2));
         s.add("b", uniform_array({4}, -1, 1, 3));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         const TensorRef y = linear(t, "y", x, {parameter(s, 1), parameter(s, 2)});
         return t.value(y).shape() == Shape{3, 2, 4} ? y : throw InvalidArgument("the axes of time are lost");
       },
       [](const ParameterStore& s) {
         Array rows = master(s, 0).clone();
         rows.reshape({6, 5});
         return reference::linear(rows, master(s, 1), master(s, 2));
       }},
      {"embedding",
       {4, 3},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef, ParameterStore& s) {
         return embedding(t, "y", {tokens, {3, 2}}, parameter(s, 0));
       },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (const std::int32_t token : tokens)
           for (std::size_t i = 0; i < 3; ++i)
             y.push_back(static_cast<double>(master(s, 0)[static_cast<std::size_t>(token) * 3 + i]));
         return y;
       }},
      {"layer_norm",
       {3, 2, 6},
       [](ParameterStore& s) {
         s.add("gamma", uniform_array({6}, 0.5f, 1.5f, 2));
         s.add("beta", uniform_array({6}, -1, 1, 3));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         return layer_norm(t, "y", x, {.gamma = parameter(s, 1), .beta = parameter(s, 2)});
       },
       [](const ParameterStore& s) {
         return reference::layer_norm(master(s, 0), master(s, 1), master(s, 2), 1e-5);
       }},
      {"dropout",
       {3, 7},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return dropout(t, "y", x, 0.25f); },
       [](const ParameterStore& s) {
         const RandomStream stream{0, 0, site_hash("y.mask", 6)};
         std::vector<double> y;
         for (std::size_t i = 0; i < master(s, 0).size(); ++i)
           y.push_back(stream.uniform(i) < 0.25f ? 0.0 : static_cast<double>(master(s, 0)[i]) / 0.75);
         return y;
       }},
  };
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::sequence_layer_cases
