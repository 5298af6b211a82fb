// Every layer: its forward against naive double loops, its backward against finite differences.
#include <algorithm>
#include <cmath>

#include <halfscope/kernel/cast/round.hpp>

#include "sim/layers/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/array_of.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::layers_test {
namespace {

std::unique_ptr<ParameterStore> make_store(const LayerCase& layer) {
  auto store = std::make_unique<ParameterStore>();
  store->add("x", uniform_array(layer.input, -2, 2, 1));
  layer.add_parameters(*store);
  return store;
}

/// A scalar of the layer's output: the sum of its elements, weighted by fixed random numbers.
struct Objective {
  std::vector<double> terms;
  Array weights;
};

Objective objective(const Array& y) {
  Objective result{{}, uniform_array(y.shape(), -1, 1, 77)};
  for (std::size_t i = 0; i < y.size(); ++i)
    result.terms.push_back(static_cast<double>(y[i]) * static_cast<double>(result.weights[i]));
  return result;
}

/// Runs the layer, in training backward from the objective too; the objective's terms.
std::vector<double> run(const LayerCase& layer, ParameterStore& store, Phase phase) {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, phase);
  const TensorRef y = layer.apply(tape, leaf(tape, parameter(store, 0)), store);
  Objective result = objective(tape.value(y));
  if (phase == Phase::training) {
    const TensorRef loss = loss_with(
        tape, [&](BackwardScope& t, Array) { t.add_gradient(y, result.weights.clone()); }, "objective");
    tape.backward(loss, 1.0f);
  }
  return result.terms;
}

/// The objective's central difference quotient in one weight.
struct Quotient {
  double value = 0;
  double moved = 0;  ///< the terms' root mean square, times the root of how many the weight moves
};

Quotient quotient(const LayerCase& layer, ParameterStore& store, float& weight, float step) {
  const float x = weight;
  weight = x + step;
  const std::vector<double> above = run(layer, store, Phase::training);
  weight = x - step;
  const std::vector<double> below = run(layer, store, Phase::training);
  weight = x;
  Quotient result;
  double squares = 0, moved = 1;
  for (std::size_t i = 0; i < above.size(); ++i) {
    result.value += (above[i] - below[i]) / (2 * static_cast<double>(step));
    squares += above[i] * above[i];
    moved += above[i] != below[i] ? 1 : 0;
  }
  result.moved = std::sqrt(squares / static_cast<double>(above.size()) * moved);
  return result;
}

TEST_CASE("every layer's forward equals the naive double loop", "[layers]") {
  for (const LayerCase& layer : all_layer_cases()) {
    INFO(layer.name);
    const auto store = make_store(layer);
    TrackerList none;
    Caster caster({}, 0, none);
    Tape tape(caster, Phase::training);
    const TensorRef y = layer.apply(tape, leaf(tape, parameter(*store, 0)), *store);
    const std::vector<double> expected = layer.reference(*store);
    REQUIRE(tape.value(y).size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(tape.value(y)[i] == Approx(expected[i]).margin(2e-6));
  }
}

// Two errors of a difference quotient. The step h costs h^2/6 of the third derivative, four times as much for
// twice the step: a third of what the two quotients differ by. And the outputs that the weight moves, sums of
// numbers of a layer's usual size, are each off by an ulp of that, 2^-23: in quadrature by 2^-23/h of their
// number's root. The quotient of twice the step has half of that, and a third of both is as much again.
TEST_CASE("every layer's backward equals finite differences", "[layers]") {
  constexpr float step = 0x1p-10f;
  constexpr double rounding = 1.5 * 0x1p-23 / double{step};
  constexpr double most = 3e-3;  // bound of the largest sums, which rarely have so many errors of one sign
  for (const LayerCase& layer : all_layer_cases()) {
    const auto store = make_store(layer);
    (void)run(layer, *store, Phase::training);
    // All of them before any weight moves: each later run leaves its own.
    std::vector<Array> gradients;
    for (const Parameter& p : store->parameters) gradients.push_back(p.gradient.clone());
    for (std::size_t n = 0; n < gradients.size(); ++n) {
      Parameter& p = parameter(*store, n);
      const Array& gradient = gradients[n];
      REQUIRE(gradient.shape() == p.master.shape());
      for (std::size_t i = 0; i < p.master.size(); ++i) {
        const auto [found, moved] = quotient(layer, *store, p.master[i], step);
        const double twice = quotient(layer, *store, p.master[i], 2 * step).value;
        const double tolerance = std::min(most, std::abs(twice - found) / 3 + rounding * moved);
        INFO(layer.name << ", " << p.name << "[" << i << "]: " << gradient[i] << " and " << found << " +- "
                        << tolerance);
        CHECK(std::abs(double{gradient[i]} - found) <= tolerance);
      }
    }
  }
}

/// Calls `look` with the output of `layer` under `policy` and the entries of its tape.
void record_under(const PrecisionPolicy& policy, const LayerCase& layer, ParameterStore& store,
                  const std::function<void(std::vector<float>, const std::vector<TapeEntry>&)>& look) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  const TensorRef y = layer.apply(tape, leaf(tape, parameter(store, 0)), store);
  const Array& output = tape.value(y);
  look({output.values().begin(), output.values().end()}, tape.entries());
}

TEST_CASE("every layer follows the policy's lists", "[layers][operations]") {
  PrecisionPolicy denied = fp16_mixed_policy();
  denied.rules = parse_operation_rules(OperationList::deny, "*");
  const Quantizer half{.format = fp16};
  for (const LayerCase& layer : all_layer_cases()) {
    INFO(layer.name);
    const auto store = make_store(layer);
    for (Parameter& p : store->parameters) round(p.master.values(), p.master.values(), half);
    std::vector<float> exact;
    record_under({}, layer, *store, [&](std::vector<float> output, const auto&) { exact = output; });
    record_under(denied, layer, *store, [&](const std::vector<float>& output, const auto& entries) {
      CHECK(output == exact);
      for (const TapeEntry& entry : entries) {
        INFO(entry.name);
        CHECK(entry.operation.has_value() == (entry.parameter == nullptr));
        if (entry.operation) CHECK(entry.precision == Precision::fp32);
      }
    });
    record_under(fp16_mixed_policy(), layer, *store, [&](std::vector<float> output, const auto& entries) {
      for (const TapeEntry& entry : entries) CHECK(entry.precision == Precision::reduced);
      const OperationEntry& last = entries.back().operation->entry();
      if (last.kind == OperationKind::loss || last.name == "total_loss")
        return;  // FP32, which nothing rounds
      std::vector<float> rounded = output;
      round(rounded, rounded, half);
      CHECK(output == rounded);
    });
  }
}

TEST_CASE("batch norm evaluates with running statistics", "[layers]") {
  const std::vector<LayerCase> layers = all_layer_cases();
  const auto is_batch_norm = [](const LayerCase& layer) { return layer.name == "batch_norm"; };
  const LayerCase& layer = *std::find_if(layers.begin(), layers.end(), is_batch_norm);
  const auto store = make_store(layer);
  for (int i = 0; i < 200; ++i) (void)run(layer, *store, Phase::training);
  double sum = 0;
  const Array& x = master(*store, 0);
  for (std::size_t r = 0; r < 24; ++r) sum += static_cast<double>(x[r * 5]) / 24;
  CHECK(store->buffers[0].value[0] == Approx(sum).margin(1e-5));
  // The running variance is the unbiased one: 24/23 of the batch's.
  double variance = 0;
  for (std::size_t r = 0; r < 24; ++r) variance += std::pow(static_cast<double>(x[r * 5]) - sum, 2) / 23;
  CHECK(store->buffers[1].value[0] == Approx(variance).epsilon(1e-4));
  const Array before = store->buffers[0].value.clone();
  (void)run(layer, *store, Phase::evaluation);
  CHECK(std::equal(before.values().begin(), before.values().end(), store->buffers[0].value.data()));
}

TEST_CASE("layers say which shapes do not fit", "[layers]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& w = store.add("w", Array::zeros({5, 4}));
  Parameter& b = store.add("b", Array::zeros({4}));
  const TensorRef x = tape.input("x", Array::zeros({2, 3}));
  CHECK(message_of<InvalidArgument>([&] {
          (void)linear(tape, "fc", x, {w, b});
        }) == "layer fc: input (2, 3) does not fit weight (5, 4)");
  CHECK_THROWS_AS(max_pool(tape, "pool", x), InvalidArgument);
  const TensorRef odd = tape.input("odd", Array::zeros({1, 3, 4, 2}));
  CHECK_THROWS_AS(max_pool(tape, "pool", odd), InvalidArgument);
  CHECK_THROWS_AS(softmax_cross_entropy(tape, "loss", x, std::vector<std::int32_t>{0, 3}), InvalidArgument);
}

TEST_CASE("convolutions and pools say which windows have no place", "[layers]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter &square = store.add("w", Array::zeros({3, 3, 2, 4})),
            &even = store.add("e", Array::zeros({2, 3, 2, 4}));
  const TensorRef x = tape.input("x", Array::zeros({1, 2, 5, 2}));
  const auto message = [&](const Conv2dParameters& parameters) {
    return message_of<InvalidArgument>([&] { (void)conv2d(tape, "conv", x, parameters); });
  };
  check_says(message({.weight = square, .padding = Border{0, 0}}),
             {"layer conv", "3x3 kernel", "2x5 images"});
  check_says(message({.weight = square, .padding = Border{3, 1}}), {"layer conv", "padding 3x1"});
  check_says(message({.weight = square, .padding = Border{-1, 1}}), {"layer conv", "padding -1x1"});
  check_says(message({.weight = even}), {"layer conv", "(1, 2, 5, 2)", "(2, 3, 2, 4)"});
  for (const std::int64_t groups : {0, 2, 3})
    check_says(message({.weight = square, .groups = groups}),
               {"layer conv", std::to_string(groups) + " groups"});
  const auto pool_message = [&](const PoolWindow& window) {
    return message_of<InvalidArgument>([&] { (void)max_pool(tape, "pool", x, window); });
  };
  check_says(pool_message({.size = 3, .stride = 2}), {"layer pool", "2x5", "windows of 3"});
  check_says(pool_message({.size = 16, .stride = 1, .partial = PartialWindow::kept}),
             {"layer pool", "size of 1 to 15"});
  check_says(pool_message({.size = 2, .stride = 0}), {"layer pool", "stride 0"});
  check_says(pool_message({.size = 2, .stride = 1, .padding = 2}), {"layer pool", "padding 2"});
  for (const LocalResponse& wrong :
       {LocalResponse{.size = 4}, LocalResponse{.alpha = -1}, LocalResponse{.k = 0}}) {
    check_says(message_of<InvalidArgument>([&] { (void)local_response_norm(tape, "norm", x, wrong); }),
               {"layer norm", "odd number"});
  }
}

TEST_CASE("an evaluation's loss is of the labels themselves", "[layers]") {
  TrackerList none;
  Caster caster({}, 0, none);
  const std::vector<std::int32_t> labels{2, 0};
  const auto loss = [&](Phase phase, float smoothing) {
    Tape tape(caster, phase);
    const TensorRef x = tape.input("x", uniform_array({2, 3}, -2, 2, 1));
    return tape.value(softmax_cross_entropy(tape, "loss", x, labels, smoothing)).item();
  };
  CHECK(loss(Phase::evaluation, 0.5f) == loss(Phase::evaluation, 0));
  CHECK(loss(Phase::training, 0.5f) != loss(Phase::training, 0));
  for (const float wrong : {-0.1f, 1.0f, NAN}) {
    check_says(message_of<InvalidArgument>([&] { (void)loss(Phase::training, wrong); }),
               {"layer loss", "label smoothing"});
  }
}

/// The gradient of the right one of two logits, `gap` above the other, with sums of the loss in `reduce`.
float gradient_at(float gap, const char* reduce) {
  PrecisionPolicy policy;
  policy.reductions = parse_scoped_accumulate(reduce);
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& logits = store.add("logits", array_of({1, 2}, {0, gap}));
  const TensorRef x = linear(tape, "output", tape.input("one", array_of({1, 1}, {1})), logits);
  tape.backward(softmax_cross_entropy(tape, "loss", x, std::vector<std::int32_t>{1}), 1);
  return logits.gradient[1];
}

TEST_CASE("a softmax with sums of p bits has no gradient from a gap of p ln 2 on", "[layers][known]") {
  for (const auto& [reduce, bits] :
       {std::pair{"bf16_sequential@loss", 8}, {"fp16_sequential@loss", 11}, {"fp32_chunked(256)@loss", 24}}) {
    INFO(reduce);
    const double gap = bits * std::log(2.0);
    CHECK(gradient_at(static_cast<float>(gap + 0.01), reduce) == 0);
    CHECK(gradient_at(static_cast<float>(gap - 0.01), reduce) < 0);
  }
}

/// y and the gradient of x for a gradient of ones.
std::pair<Array, Array> forward_and_back(const PrecisionPolicy& policy, Array x,
                                         const std::function<TensorRef(Tape&, TensorRef)>& layer) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& input = store.add("x", std::move(x));
  const TensorRef y = layer(tape, leaf(tape, input));
  const TensorRef loss = loss_with(
      tape,
      [y](BackwardScope& t, Array) {
        Array ones(t.value(y).shape());
        std::fill_n(ones.data(), ones.size(), 1.0f);
        t.add_gradient(y, std::move(ones));
      },
      "sum");
  tape.backward(loss, 1.0f);
  return {tape.value(y).clone(), std::move(input.gradient)};
}

TEST_CASE("the first of equals has the gradient of every window it wins", "[layers]") {
  const auto pool = [](Tape& t, TensorRef x) {
    return max_pool(t, "y", x, {.size = 3, .stride = 1, .padding = 1});
  };
  const auto [y, gradient] = forward_and_back({}, Array::zeros({1, 3, 3, 1}), pool);
  // The windows around the nine pixels, clipped, have their first pixels at rows and columns 0, 0, 1.
  const std::vector<float> expected{4, 2, 0, 2, 1, 0, 0, 0, 0};
  CHECK(std::equal(expected.begin(), expected.end(), gradient.data()));
}

TEST_CASE("local response normalisation in FP16 overflows to zeros", "[layers]") {
  const auto norm = [](Tape& t, TensorRef x) { return local_response_norm(t, "norm1", x); };
  const auto run_with = [&](const char* reduce, float x) {
    PrecisionPolicy policy;
    policy.reductions = parse_scoped_accumulate(reduce);
    return forward_and_back(policy, Array::from({1, 1, 1, 2}, {x, 1}), norm).first;
  };
  CHECK(run_with("fp32_sequential", 256)[0] > 40);
  CHECK(run_with("fp16_sequential", 250)[0] > 40);
  CHECK(run_with("fp16_sequential", 256)[0] == 0);
  CHECK(run_with("fp16_sequential", 256)[1] == 0);  // its neighbour's square is infinite
  CHECK(run_with("fp16_sequential@norm2", 256)[0] > 40);
}

}  // namespace
}  // namespace halfscope::layers_test
