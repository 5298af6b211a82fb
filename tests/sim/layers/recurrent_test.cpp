// Recurrent layers beside PyTorch's numbers, their casts by time step, and shapes that do not fit.
#include <algorithm>
#include <map>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/stats/trackers.hpp>

#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::recurrent_test {
namespace {

constexpr std::int64_t time_steps = 3, batch = 2, in = 2, hidden = 3;

using Layer = TensorRef (*)(Tape&, const std::string&, TensorRef, const RecurrentParameters&);
struct RecurrentCase {
  std::string name;
  Layer layer;
  std::int64_t gates;
};
const std::vector<RecurrentCase> recurrent_cases{{"gru", gru, 3}, {"lstm", lstm, 4}};

/// The numbers that PyTorch was given too.
Array filled(Shape shape, std::size_t seed, float factor = 1) {
  Array array(std::move(shape));
  for (std::size_t i = 0; i < array.size(); ++i)
    array[i] = factor * (static_cast<float>((i * 37 + seed * 17) % 101) / 101.0f - 0.5f);
  return array;
}

void add_parameters(ParameterStore& store, std::int64_t gates) {
  store.add("input_weight", filled({in, gates * hidden}, 1));
  store.add("input_bias", filled({gates * hidden}, 2));
  store.add("hidden_weight", filled({hidden, gates * hidden}, 3));
  store.add("hidden_bias", filled({gates * hidden}, 4));
}

RecurrentParameters parameters_of(ParameterStore& store) {
  return {store.parameters[0], store.parameters[1], store.parameters[2], store.parameters[3]};
}

/// A scalar whose gradient is that of the sum of y's last states; its own value is 0.
TensorRef sum_of_last(Tape& tape, TensorRef y) {
  return loss_with(tape, [y](BackwardScope& t, Array g) {
    Array ones = Array::zeros(t.value(y).shape());
    for (float& one : at_time(ones, time_steps - 1).floats()) one = g[0];
    t.add_gradient(y, std::move(ones));
  });
}

/// Runs the layer forward and backward from the sum of its last states; returns all states.
Array run(const RecurrentCase& entry, ParameterStore& store, Caster& caster, float loss_scale) {
  add_parameters(store, entry.gates);
  Tape tape(caster, Phase::training);
  const TensorRef x = tape.input("x", filled({time_steps, batch, in}, 5, 4));
  const TensorRef y = entry.layer(tape, entry.name, x, parameters_of(store));
  tape.backward(sum_of_last(tape, y), loss_scale);
  return tape.value(y).clone();
}

TEST_CASE("recurrent layers give PyTorch's states and gradients", "[recurrent][known]") {
  // torch.nn.GRU and LSTM 1.13 in float64 with the same numbers: the last states, and the first hidden
  // weights' gradients of their sum.
  const std::vector<std::vector<double>> states{
      {-0.076016696, 0.57478132, -0.295281946, 0.370331983, -0.199923654, -0.239962208},
      {0.059079167, 0.079356178, -0.121194154, 0.48586913, -0.089850421, -0.01651276}};
  const std::vector<std::vector<double>> gradients{
      {0.01621113, -0.01193181, 0.003269583, -0.013096582, 0.007848892, 0.018001949},
      {0.036680093, 0.006353601, -0.013468586, 0.037246991, -0.006879254, 0.00058898}};
  for (std::size_t c = 0; c < recurrent_cases.size(); ++c) {
    TrackerList none;
    Caster caster({}, 0, none);
    ParameterStore store;
    const Array y = run(recurrent_cases[c], store, caster, 1);
    const auto last = at_time(y, time_steps - 1).floats();
    for (std::size_t i = 0; i < last.size(); ++i) CHECK(last[i] == Approx(states[c][i]).margin(1e-6));
    for (std::size_t i = 0; i < gradients[c].size(); ++i)
      CHECK(store.parameters[2].gradient[i] == Approx(gradients[c][i]).margin(1e-6));
  }
}

TEST_CASE("an LSTM with a projection gives PyTorch's states and gradients", "[recurrent][known]") {
  // torch.nn.LSTM 1.13 with proj_size = 2 in float64 with the same numbers: the last states, and the
  // gradients of their sum by the projection and, its first numbers, by the hidden weight.
  const std::vector<double> states{0.00162965376, -0.0854675111, -0.227245853, -0.0317005452};
  const std::vector<double> of_projection{0.459901468,  0.532529477,  0.0352663372,
                                          0.0269168654, -0.131018849, -0.136314118};
  const std::vector<double> of_hidden{0.00879444447, 0.00103254912,   0.00133929644,
                                      0.0111746523,  -0.000640849513, -0.000120989505};
  TrackerList none;
  Caster caster({}, 0, none);
  ParameterStore store;
  store.add("input_weight", filled({in, 4 * hidden}, 1));
  store.add("input_bias", filled({4 * hidden}, 2));
  store.add("hidden_weight", filled({2, 4 * hidden}, 3));
  store.add("hidden_bias", filled({4 * hidden}, 4));
  Parameter& projection = store.add("projection", filled({hidden, 2}, 6));
  Tape tape(caster, Phase::training);
  const TensorRef x = tape.input("x", filled({time_steps, batch, in}, 5, 4));
  const TensorRef y = projected_lstm(tape, "lstm", x, parameters_of(store), projection);
  tape.backward(sum_of_last(tape, y), 1);
  const auto last = at_time(tape.value(y), time_steps - 1).floats();
  REQUIRE(last.size() == states.size());
  for (std::size_t i = 0; i < last.size(); ++i) CHECK(last[i] == Approx(states[i]).margin(1e-6));
  for (std::size_t i = 0; i < of_projection.size(); ++i)
    CHECK(projection.gradient[i] == Approx(of_projection[i]).margin(1e-6));
  for (std::size_t i = 0; i < of_hidden.size(); ++i)
    CHECK(store.parameters[2].gradient[i] == Approx(of_hidden[i]).margin(1e-6));
}

TEST_CASE("a step's records hold each tensor of a recurrent layer once, with all time steps", "[recurrent]") {
  for (const RecurrentCase& entry : recurrent_cases) {
    TrackerList trackers;
    trackers.push_back(make_cast_statistics());
    Caster caster(fp16_mixed_policy(), 0, trackers);
    StepObservations observations;
    caster.begin_step({.step = 1, .loss_scale = 8, .observations = &observations});
    ParameterStore store;
    const Array y = run(entry, store, caster, 8);
    for (const float value : y.values()) CHECK(value == round(value, {.format = fp16}));
    std::map<std::string, std::int64_t> elements;
    for (const TensorCounters& counters : observations.tensors) {
      INFO(counters.tensor);
      CHECK(elements.count(counters.tensor) == 0);
      elements[counters.tensor] = counters.elements;
      CHECK(counters.scale == 8);
    }
    const std::int64_t states = time_steps * batch * hidden;
    CHECK(elements.at(entry.name) == states);
    CHECK(elements.at(entry.name + ".previous") == states / time_steps * (time_steps - 1));
    CHECK(elements.at(entry.name + ".gate_sum") == states * (entry.name == "gru" ? 2 : 4));
    CHECK(elements.at("hidden_weight") == hidden * entry.gates * hidden);
    REQUIRE(observations.histograms.size() == observations.tensors.size());
    for (std::size_t i = 0; i < observations.tensors.size(); ++i)
      CHECK(observations.histograms[i].histogram.elements() == observations.tensors[i].elements);
  }
}

TEST_CASE("parts of a tensor count as the whole does, in any order", "[recurrent][tracker]") {
  const Array whole = uniform_array({300}, -0x1p-20f, 0x1p-20f, 9);
  const auto observe = [&](const std::vector<std::int32_t>& parts) {
    TrackerList trackers;
    trackers.push_back(make_cast_statistics());
    Caster caster(fp16_mixed_policy(), 0, trackers);
    StepObservations observations;
    caster.begin_step({.step = 1, .observations = &observations});
    Array copy = whole.clone();
    if (parts.empty()) caster.cast(copy, "t", Role::activation_gradient, {});
    for (const std::int32_t part : parts)
      caster.cast(copy.values().subspan(static_cast<std::size_t>(part) * 100, 100), "t",
                  Role::activation_gradient, {}, part);
    return observations;
  };
  const StepObservations expected = observe({});
  for (const StepObservations& got : {observe({0, 1, 2}), observe({2, 0, 1})}) {
    REQUIRE(got.tensors.size() == 1);
    REQUIRE(got.histograms.size() == 1);
    CHECK(got.histograms[0].histogram == expected.histograms[0].histogram);
    CHECK(got.tensors[0].counters.flushed == expected.tensors[0].counters.flushed);
    CHECK(got.tensors[0].counters.subnormal == expected.tensors[0].counters.subnormal);
    CHECK(got.tensors[0].counters.max_abs == expected.tensors[0].counters.max_abs);
    CHECK(got.tensors[0].elements == 300);
    CHECK(got.tensors[0].counters.flushed > 0);
  }
}

TEST_CASE("each part of a tensor is rounded with random bits of its own", "[recurrent]") {
  TrackerList none;
  const PrecisionPolicy policy = fp32_policy().with(Role::activation, parse_quantizer("fp16/stochastic"));
  Caster caster(policy, 7, none);
  const auto cast = [&](std::int32_t part) {
    std::vector<float> values(256, 1.0f + 0x1p-11f);
    caster.cast(values, "t", Role::activation, {}, part);
    return values;
  };
  CHECK(cast(0) == cast(0));
  CHECK(cast(0) != cast(1));
  CHECK(cast(1) != cast(256));
  CHECK(cast(0) != cast(whole_tensor));
}

TEST_CASE("sequence layers say which shapes and tokens do not fit", "[recurrent]") {
  TrackerList none;
  Caster caster({}, 0, none);
  for (const RecurrentCase& entry : recurrent_cases) {
    Tape tape(caster, Phase::training);
    ParameterStore store;
    add_parameters(store, entry.gates);
    const TensorRef flat = tape.input("x", Array::zeros({batch, in}));
    check_says(
        message_of<InvalidArgument>([&] { (void)entry.layer(tape, "cell", flat, parameters_of(store)); }),
        {"layer cell", "(2, 2)", "(time, batch, in)"});
    const TensorRef wide = tape.input("x", Array::zeros({1, batch, in + 1}));
    check_says(
        message_of<InvalidArgument>([&] { (void)entry.layer(tape, "cell", wide, parameters_of(store)); }),
        {"cell.input", "(1, 2, 3)"});
    check_says(message_of<InvalidArgument>([&] {
                 (void)embedding(tape, "words", {std::vector<std::int32_t>{0, 2}, {2}}, store.parameters[0]);
               }),
               {"layer words", "token 2", "position 1", "[0, 2)"});
  }
}

}  // namespace
}  // namespace halfscope::recurrent_test
