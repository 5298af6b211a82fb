// Multi-head attention beside naive loops in double precision; parameter 0 is the input.
#include <cmath>

#include "sim/models/parts/multi_head_attention.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::multi_head_attention_cases {
namespace {

constexpr std::size_t batch = 2, time = 3, width = 4, heads = 2, part = width / heads;
const std::vector<std::int32_t> lengths{3, 2};

using Numbers = std::vector<double>;  // (batch, time, width)

Numbers projected(const Numbers& x, const Array& weight, const Array& bias) {
  Numbers y;
  for (std::size_t row = 0; row < batch * time; ++row) {
    for (std::size_t out = 0; out < width; ++out) {
      double sum = static_cast<double>(bias[out]);
      for (std::size_t in = 0; in < width; ++in)
        sum += x[row * width + in] * static_cast<double>(weight[in * width + out]);
      y.push_back(sum);
    }
  }
  return y;
}

/// The share of each of `keys` first keys in what a query's head sees.
Numbers shares(const double* query, const double* first_key, std::size_t keys) {
  Numbers terms;
  double total = 0;
  for (std::size_t key = 0; key < keys; ++key) {
    double score = 0;
    for (std::size_t i = 0; i < part; ++i) score += query[i] * first_key[key * width + i];
    total += terms.emplace_back(std::exp(score / std::sqrt(static_cast<double>(part))));
  }
  for (double& term : terms) term /= total;
  return terms;
}

Numbers attention(const ParameterStore& s, Looks looks) {
  const Array& input = master(s, 0);
  const Numbers x(input.data(), input.data() + input.size());
  const Numbers q = projected(x, master(s, 1), master(s, 2)), k = projected(x, master(s, 3), master(s, 4)),
                v = projected(x, master(s, 5), master(s, 6));
  Numbers context(x.size());
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t t = 0; t < time; ++t) {
      const auto length = static_cast<std::size_t>(lengths[b]);
      const std::size_t keys = looks == Looks::back ? std::min(length, t + 1) : length;
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t first = b * time * width + h * part, own = first + t * width;
        const Numbers weights = shares(&q[own], &k[first], keys);
        for (std::size_t key = 0; key < keys; ++key)
          for (std::size_t i = 0; i < part; ++i)
            context[own + i] += weights[key] * v[first + key * width + i];
      }
    }
  }
  return projected(context, master(s, 7), master(s, 8));
}

MultiHeadAttention of_store(ParameterStore& s) {
  const auto matrix = [&](std::size_t first) {
    return LinearParameters{parameter(s, first), parameter(s, first + 1)};
  };
  return {"y", heads, 0, matrix(1), matrix(3), matrix(5), matrix(7)};
}

Array mask_of(Looks looks) {
  return attention_mask(
      {.keys = lengths, .heads = heads, .longest_query = time, .longest_key = time, .looks = looks});
}

LayerCase attention_case(const char* name, Looks looks) {
  return {name,
          {batch, time, width},
          [](ParameterStore& s) {
            for (std::uint64_t matrix = 0; matrix < 4; ++matrix) {
              s.add("weight" + std::to_string(matrix),
                    uniform_array({width, width}, -0.5f, 0.5f, 2 + 2 * matrix));
              s.add("bias" + std::to_string(matrix), uniform_array({width}, -1, 1, 3 + 2 * matrix));
            }
          },
          [looks](Tape& t, TensorRef x, ParameterStore& s) {
            return attend(t, of_store(s), x, x, mask_of(looks));
          },
          [looks](const ParameterStore& s) { return attention(s, looks); }};
}

std::vector<LayerCase> cases() {
  return {attention_case("multi-head attention", Looks::everywhere),
          attention_case("multi-head attention, looking back", Looks::back)};
}
const LayerCases registered(cases);

ModelSpec with_heads(std::int64_t count) {
  return {.example_shape = {}, .options = {{"heads", static_cast<double>(count)}}};
}

TEST_CASE("heads that do not divide the width are named", "[attention]") {
  ParameterStore store;
  check_says(message_of<InvalidArgument>([&] {
               (void)add_attention(store, with_heads(3), {.name = "self", .width = 64, .deviation = 1});
             }),
             {"embedding_size = 64", "heads = 3"});
  CHECK(store.parameters.empty());
}

TEST_CASE("padding holds no memory, whatever it holds", "[attention]") {
  TrackerList nobody;
  Caster caster(fp16_mixed_policy(), 0, nobody);
  ParameterStore store;
  (void)store.add("x", Array::zeros({1}));
  (void)add_attention(store, with_heads(heads), {.name = "y", .width = width, .deviation = 0.7f});
  const auto output = [&](float padding) {
    Tape tape(caster, Phase::evaluation);
    Array x = uniform_array({batch, time, width}, -1, 1, 3);
    // The last position of the second sequence.
    for (std::size_t i = x.size() - width; i < x.size(); ++i) x[i] = padding;
    const TensorRef y =
        attend(tape, of_store(store), tape.input("q", uniform_array({batch, time, width}, -1, 1, 4)),
               tape.input("x", std::move(x)), mask_of(Looks::everywhere));
    return std::vector<float>(tape.value(y).data(), tape.value(y).data() + tape.value(y).size());
  };
  CHECK(output(0) == output(100));
}

}  // namespace
}  // namespace halfscope::multi_head_attention_cases
