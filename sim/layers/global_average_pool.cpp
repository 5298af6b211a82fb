// Forward and backward of global average pooling.
#include "sim/layers/global_average_pool.hpp"

#include <halfscope/kernel/columns.hpp>
#include <halfscope/kernel/elementwise.hpp>
#include <halfscope/kernel/reduce.hpp>

namespace halfscope {
namespace {

/// (batch, channels): the sums over the positions of each image.
Array position_sums(Caster& caster, const std::string& name, const Array& x) {
  const std::int64_t positions = x.extent(1) * x.extent(2), channels = x.extent(3);
  const AccumulateModel model = caster.policy().reductions_in(name);
  Array sums({x.extent(0), channels});
  ReductionCounters counters;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    const auto image_size = static_cast<std::size_t>(positions * channels);
    const ConstValues pixels = x.numbers().part(static_cast<std::size_t>(n) * image_size, image_size);
    const ColumnTerms terms{.x = ElementReader(pixels), .rows = positions, .columns = channels};
    const auto image =
        sums.values().subspan(static_cast<std::size_t>(n * channels), static_cast<std::size_t>(channels));
    if (caster.watches_reductions()) {
      counters.merge(counted_column_sums(terms, model, image));
    } else {
      column_sums(terms, model, image);
    }
  }
  caster.observe_reduction(name + ".mean", counters);
  return sums;
}

}  // namespace

TensorRef global_average_pool(Tape& tape, const std::string& name, TensorRef x) {
  const Array& input = tape.value(x);
  if (input.shape().size() != 4 || input.empty()) {
    throw RequestError("layer " + name + ": input " + to_string(input.shape()) + " is no batch of images");
  }
  const std::int64_t positions = input.extent(1) * input.extent(2);
  const float share = 1.0f / static_cast<float>(positions);
  Array y = position_sums(tape.caster(), name, input);
  scale(y.values(), share, y.values());

  const auto backward = [x, positions, share](Tape& t, Array gradient) {
    Array shares(gradient.shape());
    scale(gradient.numbers(), share, shares.values());
    Array x_gradient(t.value(x).shape());
    const std::int64_t images = gradient.extent(0), channels = gradient.extent(1);
    copy_columns({positions, channels, images},
                 {.values = shares.numbers(), .matrix = channels},  // one row for all positions
                 {.values = x_gradient.numbers(), .row = channels, .matrix = positions * channels});
    t.add_gradient(x, std::move(x_gradient));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
