// The layers of attention and their activations, one line per layer; parameter 0 is the input.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/layers/activations.hpp"
#include "sim/layers/attention.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::attention_layer_cases {
namespace {

constexpr std::size_t batch = 2, rows = 3, inner = 4, columns = 5;

/// Naive products in double precision; b is (batch, inner, columns) or, transposed, (batch, columns, inner).
std::vector<double> products(const Array& a, const Array& b, Operand second) {
  std::vector<double> y;
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (std::size_t i = 0; i < inner; ++i) {
          const std::size_t in_b = second == Operand::transposed ? c * inner + i : i * columns + c;
          sum += static_cast<double>(a[(n * rows + r) * inner + i]) *
                 static_cast<double>(b[n * inner * columns + in_b]);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

/// The input is the first operand, a parameter the second.
LayerCase first_operand(const char* name, Shape b, Operand second) {
  return {name,
          {batch, rows, inner},
          [b](ParameterStore& s) { s.add("b", uniform_array(b, -1, 1, 2)); },
          [second](Tape& t, TensorRef x, ParameterStore& s) {
            return batched_matmul(t, "y", x, leaf(t, parameter(s, 1)), second);
          },
          [second](const ParameterStore& s) { return products(master(s, 0), master(s, 1), second); }};
}

/// The input is the second operand.
LayerCase second_operand(const char* name, Shape b, Operand second) {
  return {name, std::move(b),
          [](ParameterStore& s) {
            s.add("a", uniform_array({batch, rows, inner}, -1, 1, 2));
          },
          [second](Tape& t, TensorRef x, ParameterStore& s) {
            return batched_matmul(t, "y", leaf(t, parameter(s, 1)), x, second);
          },
          [second](const ParameterStore& s) { return products(master(s, 1), master(s, 0), second); }};
}

/// A mask that leaves the last of five columns out, and of the second row all but the first.
Array some_mask() {
  constexpr float out = -1e4f;
  Array mask({2, 5}, Device::cpu);
  std::ranges::copy(std::array{0.0f, 0.0f, 0.0f, 0.0f, out, 0.0f, out, out, out, out}, mask.data());
  return mask;
}

LayerCase gelu_case(const char* name, Gelu form, double (*share)(double)) {
  return {name,
          {3, 7},
          [](ParameterStore&) {},
          [form](Tape& t, TensorRef x, ParameterStore&) { return gelu(t, "y", x, form); },
          [share](const ParameterStore& s) {
            std::vector<double> y;
            for (const float x : master(s, 0).values())
              y.push_back(static_cast<double>(x) * share(static_cast<double>(x)));
            return y;
          }};
}

std::vector<LayerCase> cases() {
  const auto many = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  const Shape plain{many(batch), many(inner), many(columns)}, turned{many(batch), many(columns), many(inner)};
  return {
      first_operand("batched_matmul, first operand", plain, Operand::plain),
      first_operand("batched_matmul, first operand, second transposed", turned, Operand::transposed),
      second_operand("batched_matmul, second operand", plain, Operand::plain),
      second_operand("batched_matmul, second operand transposed", turned, Operand::transposed),
      {"masked_softmax",
       {2, 5},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) {
         return masked_softmax(t, "y", x, some_mask().to(active_device()));
       },
       [](const ParameterStore& s) {
         std::vector<double> y;
         const Array mask = some_mask();
         for (std::size_t row = 0; row < 2; ++row) {
           double sum = 0;
           for (std::size_t c = 0; c < 5; ++c)
             if (mask[row * 5 + c] == 0) sum += std::exp(static_cast<double>(master(s, 0)[row * 5 + c]));
           for (std::size_t c = 0; c < 5; ++c) {
             const double term = std::exp(static_cast<double>(master(s, 0)[row * 5 + c]));
             y.push_back(mask[row * 5 + c] == 0 ? term / sum : 0);
           }
         }
         return y;
       }},
      {"scaled",
       {3, 7},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return scaled(t, "y", x, 0.3f); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (const float x : master(s, 0).values()) y.push_back(static_cast<double>(x) * 0.3);
         return y;
       }},
      {"tanh",
       {3, 7},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return tanh(t, "y", x); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (const float x : master(s, 0).values()) y.push_back(std::tanh(static_cast<double>(x)));
         return y;
       }},
      gelu_case("gelu", Gelu::erf, [](double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }),
      gelu_case("gelu, tanh", Gelu::tanh,
                [](double x) {
                  return 0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
                }),
  };
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::attention_layer_cases
