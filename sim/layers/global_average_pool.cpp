// Forward and backward of global average pooling.
#include "sim/layers/layers.hpp"

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

/// (batch, channels): the sums over the positions of each image.
Array position_sums(Caster& caster, const std::string& name, const Array& x) {
  const std::int64_t positions = x.extent(1) * x.extent(2), channels = x.extent(3);
  Array sums({x.extent(0), channels});
  const ColumnTerms terms{
      .x = ElementReader(x.view()), .rows = positions, .columns = channels, .matrices = x.extent(0)};
  caster.sum_columns(name + ".mean", terms, caster.policy().reductions_in(name), sums.values());
  return sums;
}

}  // namespace

TensorRef global_average_pool(Tape& tape, const std::string& name, TensorRef x) {
  tape.begin("adaptive_avg_pool2d", name, {&x});
  const Array& input = tape.value(x);
  if (input.shape().size() != 4 || input.empty()) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input.shape()) + " is no batch of images");
  }
  const std::int64_t positions = input.extent(1) * input.extent(2);
  const float share = 1.0f / static_cast<float>(positions);
  Array y = position_sums(tape.caster(), name, input);
  scale(y.values(), share, y.values());

  const auto backward = [x, positions, share](Tape& t, Array gradient) {
    Array shares(gradient.shape());
    scale(gradient.view(), share, shares.values());
    Array x_gradient(t.value(x).shape());
    const std::int64_t images = gradient.extent(0), channels = gradient.extent(1);
    copy_columns({positions, channels, images},
                 {.values = shares.view(), .matrix = channels},  // one row for all positions
                 {.values = x_gradient.view(), .row = channels, .matrix = positions * channels});
    t.add_gradient(x, std::move(x_gradient));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
