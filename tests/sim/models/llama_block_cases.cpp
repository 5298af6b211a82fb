// A block of a llama beside naive loops in double precision; parameter 0 is the input.
#include <cmath>

#include "sim/models/parts/llama_block.hpp"
#include "sim/models/parts/multi_head_attention.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::llama_block_cases {
namespace {

constexpr std::size_t batch = 2, time = 3, width = 8, heads = 4, part = width / heads, hidden = 5;

using Numbers = std::vector<double>;

/// Rows of x, as long as the weight is high, times the weight.
Numbers times(const Numbers& x, const Array& weight) {
  const auto in = static_cast<std::size_t>(weight.extent(0)),
             out = static_cast<std::size_t>(weight.extent(1));
  Numbers y(x.size() / in * out);
  for (std::size_t row = 0; row < x.size() / in; ++row)
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o)
        y[row * out + o] += x[row * in + i] * static_cast<double>(weight[i * out + o]);
  return y;
}

Numbers normalised(const Numbers& x, const Array& gamma) {
  Numbers y;
  for (std::size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (std::size_t c = 0; c < width; ++c) squares += x[row + c] * x[row + c];
    const double root = std::sqrt(squares / width + 1e-6);
    for (std::size_t c = 0; c < width; ++c) y.push_back(x[row + c] / root * static_cast<double>(gamma[c]));
  }
  return y;
}

/// Heads of two channels, which turn by as many radians as their position's number.
Numbers turned(const Numbers& x, std::size_t row_length) {
  static_assert(part == 2);
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const auto position = static_cast<double>(i / row_length % time);
    y[i] = x[i] * std::cos(position) - x[i + 1] * std::sin(position);
    y[i + 1] = x[i + 1] * std::cos(position) + x[i] * std::sin(position);
  }
  return y;
}

/// Queries, keys and values of all positions.
struct Projections {
  Numbers q, k, v;
  std::size_t key_value_heads;
};

/// Adds what head h of position t of an example sees to the context's row.
void add_context(const Projections& p, std::size_t example, std::size_t t, std::size_t h, Numbers& context) {
  const std::size_t group = h / (heads / p.key_value_heads), other_width = p.key_value_heads * part;
  const double* query = &p.q[(example * time + t) * width + h * part];
  Numbers terms;
  double total = 0;
  for (std::size_t key = 0; key <= t; ++key) {
    double score = 0;
    for (std::size_t i = 0; i < part; ++i)
      score += query[i] * p.k[(example * time + key) * other_width + group * part + i];
    total += terms.emplace_back(std::exp(score / std::sqrt(static_cast<double>(part))));
  }
  for (std::size_t key = 0; key <= t; ++key)
    for (std::size_t i = 0; i < part; ++i)
      context[(example * time + t) * width + h * part + i] +=
          terms[key] / total * p.v[(example * time + key) * other_width + group * part + i];
}

Numbers block(const ParameterStore& s, std::size_t key_value_heads) {
  const Array& input = master(s, 0);
  Numbers x(input.data(), input.data() + input.size());
  const Numbers seen = normalised(x, master(s, 1));
  const Projections p{turned(times(seen, master(s, 2)), width),
                      turned(times(seen, master(s, 3)), key_value_heads * part), times(seen, master(s, 4)),
                      key_value_heads};
  Numbers context(x.size());
  for (std::size_t example = 0; example < batch; ++example)
    for (std::size_t t = 0; t < time; ++t)
      for (std::size_t h = 0; h < heads; ++h) add_context(p, example, t, h, context);
  const Numbers attended = times(context, master(s, 5));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
  const Numbers fed = normalised(x, master(s, 6));
  Numbers inner = times(fed, master(s, 7));
  const Numbers up = times(fed, master(s, 8));
  for (std::size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
  const Numbers down = times(inner, master(s, 9));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += down[i];
  return x;
}

LayerCase block_case(const char* name, std::size_t key_value_heads) {
  const auto narrow = static_cast<std::int64_t>(key_value_heads * part);
  return {name,
          {batch, time, width},
          [narrow](ParameterStore& s) {
            s.add("attention_gamma", uniform_array({width}, 0.5f, 1.5f, 2));
            s.add("query", uniform_array({width, width}, -0.5f, 0.5f, 3));
            s.add("key", uniform_array({width, narrow}, -0.5f, 0.5f, 4));
            s.add("value", uniform_array({width, narrow}, -0.5f, 0.5f, 5));
            s.add("output", uniform_array({width, width}, -0.5f, 0.5f, 6));
            s.add("network_gamma", uniform_array({width}, 0.5f, 1.5f, 7));
            s.add("gate", uniform_array({width, hidden}, -0.5f, 0.5f, 8));
            s.add("up", uniform_array({width, hidden}, -0.5f, 0.5f, 9));
            s.add("down", uniform_array({hidden, width}, -0.5f, 0.5f, 10));
          },
          [key_value_heads](Tape& t, TensorRef x, ParameterStore& s) {
            const std::vector<std::int32_t> lengths(batch, time);
            const Array mask = attention_mask({.keys = lengths,
                                               .heads = heads,
                                               .longest_query = time,
                                               .longest_key = time,
                                               .looks = Looks::back});
            return apply_llama_block(t,
                                     {.name = "y",
                                      .heads = heads,
                                      .key_value_heads = static_cast<std::int64_t>(key_value_heads),
                                      .attention_norm = {parameter(s, 1)},
                                      .network_norm = {parameter(s, 6)},
                                      .query = parameter(s, 2),
                                      .key = parameter(s, 3),
                                      .value = parameter(s, 4),
                                      .output = parameter(s, 5),
                                      .gate = parameter(s, 7),
                                      .up = parameter(s, 8),
                                      .down = parameter(s, 9)},
                                     x, mask);
          },
          [key_value_heads](const ParameterStore& s) { return block(s, key_value_heads); }};
}

std::vector<LayerCase> cases() {
  return {block_case("llama block", heads), block_case("llama block, two queries' heads a key", 2),
          block_case("llama block, one key for all heads", 1)};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::llama_block_cases
