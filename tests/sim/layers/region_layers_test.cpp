// Max pooling over regions at its edges: rounding once, equal numbers, no regions, and what is refused.
#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::region_layers_test {
namespace {

/// The gradient of `x` where the loss multiplies the output of `layer` by `factors`.
Array gradient_of(const Array& x, const std::function<TensorRef(Tape&, TensorRef)>& layer,
                  const Array& factors, const PrecisionPolicy& policy) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& weight = store.add("x", x.clone());
  const TensorRef y = layer(tape, leaf(tape, weight));
  const auto backward = [&](BackwardScope& t, const Array&) { t.add_gradient(y, factors.clone()); };
  const TensorRef loss = loss_with(tape, backward);
  tape.backward(loss, 1.0f);
  return weight.gradient.clone();
}

TEST_CASE("gradients of regions that overlap are added in FP32 and rounded once", "[region_layers]") {
  // 2^-11 is half of the spacing at 1: added to 1 twice in FP16 it would be lost twice.
  const std::vector<Region> thrice(3, Region{0, 0, 0, 1, 1});
  const auto pool = [&](Tape& t, TensorRef x) { return roi_max_pool(t, "y", x, {thrice, 1}); };
  const Array sum = gradient_of(Array::from({1, 1, 1, 1}, {2}), pool,
                                Array::from({3, 1, 1, 1}, {1, 0x1p-11f, 0x1p-11f}), fp16_mixed_policy());
  CHECK(sum[0] == 1 + 0x1p-10f);
  const std::vector<std::int32_t> rows{0, 0, 0};
  const auto take = [&](Tape& t, TensorRef x) { return take_rows(t, "y", x, {rows, 1}); };
  const Array taken = gradient_of(Array::from({1, 1}, {2}), take,
                                  Array::from({3, 1}, {1, 0x1p-11f, 0x1p-11f}), fp16_mixed_policy());
  CHECK(taken[0] == 1 + 0x1p-10f);
}

TEST_CASE("of equal numbers in a region the first wins", "[region_layers]") {
  const std::vector<Region> whole{{0, 0, 0, 2, 2}};
  const auto pool = [&](Tape& t, TensorRef x) { return roi_max_pool(t, "y", x, {whole, 1}); };
  const Array gradient = gradient_of(Array::from({1, 2, 2, 1}, {1, 3, 3, 3}), pool,
                                     Array::from({1, 1, 1, 1}, {5}), fp32_policy());
  CHECK(gradient[0] == 0);
  CHECK(gradient[1] == 5);
  CHECK(gradient[2] == 0);
  CHECK(gradient[3] == 0);
}

TEST_CASE("regions give the same bits on any number of threads", "[region_layers]") {
  const Array x = uniform_array({3, 9, 7, 5}, -1, 1, 1), factors = uniform_array({40, 3, 3, 5}, -1, 1, 2);
  std::vector<Region> regions;
  for (std::int32_t i = 0; i < 40; ++i) regions.push_back({i / 14, i % 4, i % 3, 5 + i % 5, 4 + i % 4});
  const auto pool = [&](Tape& t, TensorRef input) { return roi_max_pool(t, "y", input, {regions, 3}); };
  const Array one = gradient_of(x, pool, factors, fp16_mixed_policy());
  const Threads several(3);
  const Array three = gradient_of(x, pool, factors, fp16_mixed_policy());
  CHECK((std::ranges::equal(one.values(), three.values())));
}

TEST_CASE("regions that do not fit are refused", "[region_layers]") {
  const ImageShape images{2, 4, 5, 3};
  const auto message = [&](std::vector<Region> regions, std::int64_t size) {
    return message_of<InvalidArgument>([&] { static_cast<void>(RegionIndex(regions, images, size)); });
  };
  CHECK_NOTHROW(RegionIndex({}, images, 1));
  check_says(message({}, 0), {"roi_max_pool", "0 parts"});
  check_says(message({{0, 1, 1, 1, 2}}, 2), {"rows 1 to 0", "a pixel or more"});
  check_says(message({{0, 0, 0, 5, 2}}, 2), {"rows 0 to 4", "2 images of 4x5"});
  check_says(message({{0, 0, 0, 4, 6}}, 2), {"columns 0 to 5"});
  check_says(message({{0, -1, 0, 4, 5}}, 2), {"rows -1 to 3"});
  check_says(message({{2, 0, 0, 4, 5}}, 2), {"image 2"});
  check_says(message({{1, 0, 0, 4, 5}, {0, 0, 0, 4, 5}}, 2), {"image 0", "image by image"});
}

TEST_CASE("rows that are not there are refused", "[region_layers]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  const TensorRef x = tape.input("x", uniform_array({2, 6}, -1, 1, 1));
  const auto message = [&](std::vector<std::int32_t> rows, std::int64_t columns) {
    return message_of<InvalidArgument>([&] { take_rows(tape, "rows", x, {rows, columns}); });
  };
  check_says(message({4}, 3), {"row 4", "[0, 4)"});
  check_says(message({-1}, 3), {"row -1"});
  check_says(message({0}, 5), {"rows", "(2, 6)", "5 numbers"});
  check_says(message({0}, 0), {"0 numbers"});
  CHECK(tape.value(take_rows(tape, "none", x, {{}, 3})).empty());
}

}  // namespace
}  // namespace halfscope::region_layers_test
