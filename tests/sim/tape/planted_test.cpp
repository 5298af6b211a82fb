// Networks with planted underflow and planted lost updates: the records name layer, step and fraction.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include <halfscope/stats/trackers.hpp>

#include "sim/layers/layers.hpp"
#include "sim/train/records.hpp"

#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::planted_test {
namespace {

constexpr std::int64_t size = 32, step = 7;

/// diag(values), (size, size).
Array diagonal(const std::vector<float>& values) {
  Array matrix = Array::zeros({size, size});
  for (std::size_t i = 0; i < values.size(); ++i) matrix[i * (values.size() + 1)] = values[i];
  return matrix;
}

/// 1, but `small` in the first `count` places.
std::vector<float> ones_but(std::size_t count, float small) {
  std::vector<float> values(size, 1.0f);
  std::fill_n(values.begin(), count, small);
  return values;
}

/// A layer whose weight's gradient is x^T g with x = diag(inputs) and every element of g = `gradient`: row i
/// of it is inputs[i] * gradient.
void run_layer(Tape& tape, ParameterStore& store, const std::string& name, const std::vector<float>& inputs,
               float gradient) {
  Parameter& weight = store.add(name + ".weight", Array::zeros({size, size}));
  Parameter& bias = store.add(name + ".bias", Array::zeros({size}));
  const TensorRef x = tape.input(name + ".input", diagonal(inputs));
  const TensorRef y = linear(tape, name, x, {weight, bias});
  const TensorRef loss = loss_with(
      tape,
      [y, gradient](BackwardScope& t, Array scale) {
        Array g({size, size});
        std::fill_n(g.data(), g.size(), gradient * scale[0]);
        t.add_gradient(y, std::move(g));
      },
      name + ".loss");
  tape.backward(loss, 8.0f);
}

/// The record of `tensor` and `role` in a line of metrics.jsonl.
Json record_of(const Json& line, const char* list, const std::string& tensor, const std::string& role) {
  for (const Json& record : line.at(list)) {
    if (record.at("tensor") == tensor && (role.empty() || record.at("role") == role)) return record;
  }
  return {};
}

Json line_of(StepObservations&& observations) {
  RecordText text;
  append_record(text, {.step = step, .observations = std::move(observations)}, nullptr);
  return parse_json_lines(text.metrics, "metrics").at(0);
}

TEST_CASE("planted underflow is found in its layer, with its fraction", "[planted][known]") {
  for (const std::size_t planted : {0u, 1u, 8u, 31u}) {
    TrackerList trackers;
    trackers.push_back(make_cast_statistics());
    Caster caster(fp16_mixed_policy(), 0, trackers);
    StepObservations observations;
    caster.begin_step({.step = step, .loss_scale = 8, .observations = &observations});
    ParameterStore store;
    Tape healthy_tape(caster, Phase::training), planted_tape(caster, Phase::training);
    run_layer(healthy_tape, store, "healthy", ones_but(0, 1), 0x1p-20f);
    // 2^-12 * 2^-20 * 8 is 2^-29: zero in FP16.
    run_layer(planted_tape, store, "planted", ones_but(planted, 0x1p-12f), 0x1p-20f);
    const Json line = line_of(std::move(observations));
    CHECK(line.at("step") == step);
    const Json healthy = record_of(line, "tensors", "healthy.weight", "weight_gradient");
    CHECK(healthy.at("flushed") == 0);
    CHECK(healthy.at("elements") == size * size);
    const Json found = record_of(line, "tensors", "planted.weight", "weight_gradient");
    CHECK(found.at("flushed") == planted * size);
    CHECK(found.at("zeros") == 0);
    CHECK(found.at("scale") == 8);
    CHECK(record_of(line, "tensors", "planted", "activation_gradient").at("flushed") == 0);
  }
}

/// Adds `update` to `weights`, as a step against its gradient.
void update_by(Caster& caster, std::string_view tensor, Array& weights, const Array& update) {
  Array velocity = Array::zeros(weights.shape());
  const std::array state{velocity.values()};
  std::vector<std::uint32_t> largest(1);
  caster.update(
      tensor, {.gradient = update.values(), .unscale = -1, .weights = weights.values(), .largest = largest},
      [&](const WeightUpdate& counted) { optimizer_step(counted, SgdStep{.learning_rate = 1}, {}, state); });
}

TEST_CASE("planted lost updates are found in their parameter, with their fraction", "[planted][known]") {
  for (const std::size_t planted : {0u, 1u, 8u, 32u}) {
    TrackerList trackers;
    trackers.push_back(make_lost_updates());
    Caster caster(fp16_no_master_policy(), 0, trackers);
    StepObservations observations;
    caster.begin_step({.step = step, .observations = &observations});
    // An update of 2^-13 is an eighth of the spacing above 1, and the whole spacing above 2^-3.
    Array weights({size}), update({size});
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = i < planted ? 1.0f : 0x1p-3f;
      update[i] = 0x1p-13f;
    }
    update_by(caster, "healthy.weight", weights, Array::zeros({size}));
    update_by(caster, "planted.weight", weights, update);
    const Json line = line_of(std::move(observations));
    CHECK(line.at("step") == step);
    const Json healthy = record_of(line, "updates", "healthy.weight", "");
    CHECK((healthy.at("nonzero") == 0 && healthy.at("lost") == 0));
    const Json found = record_of(line, "updates", "planted.weight", "");
    CHECK(found.at("nonzero") == size);
    CHECK(found.at("lost") == planted);
  }
}

}  // namespace
}  // namespace halfscope::planted_test
