// Formats of an optimizer's state: their names, their scales, and Adam's mean square in them.
#include "sim/optim/moment_formats.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

#include "sim/optim/optimizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::moment_formats_test {
namespace {

TEST_CASE("formats of moments are read by their slots", "[moments]") {
  const auto formats =
      parse_moment_formats("first_moment=bf16, second_moment=fp8_e5m2/stochastic/saturate+scaled");
  REQUIRE(formats.size() == 2);
  CHECK(formats[0] == MomentFormat{"first_moment", {.format = bf16}, MomentScale::none});
  CHECK(formats[1] ==
        MomentFormat{"second_moment", parse_quantizer("fp8_e5m2/stochastic/saturate"), MomentScale::current});
  CHECK(parse_moment_formats("").empty());
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_moment_formats(text); });
  };
  check_says(message("bf16"), {"'bf16'", "SLOT=FORMAT"});
  check_says(message("first_moment=bf61"), {"bf61", "bf16"});
  check_says(message("velocity=bf16+delayed"), {"+delayed", "+scaled"});
}

TEST_CASE("a scaled moment uses its format's range, by a power of two", "[moments]") {
  // At a scale of 2^18 the largest is 393.2, beside 448; twice that is too large.
  Array moment = Array::from({3}, {1.5e-3f, 7e-4f, -1e-7f});
  round_moment({"m", {.format = fp8_e4m3}, MomentScale::current}, {}, moment);
  CHECK(moment[0] == 384 * 0x1p-18f);
  CHECK(moment[1] == 176 * 0x1p-18f);
  CHECK(moment[2] == -0.025390625f * 0x1p-18f);
  Array unscaled = Array::from({3}, {1.5e-3f, 7e-4f, -1e-7f});
  round_moment({"m", {.format = fp8_e4m3}, MomentScale::none}, {}, unscaled);
  CHECK(unscaled[0] == 0x1p-9f);
  CHECK(unscaled[1] == 0);
  Array zeros = Array::zeros({2});
  round_moment({"m", {.format = fp8_e4m3}, MomentScale::current}, {}, zeros);
  CHECK(zeros[0] == 0);
}

/// Adam's mean square after 3,000 steps of standard normal gradients, averaged over weights.
double mean_square_in(const char* moments) {
  constexpr std::size_t weights = 512;
  ParameterStore store;
  store.add("w", Array::zeros({weights}));
  const auto adam =
      adam_kind.make(store, {.values = resolve_entry_options({"optimizer", "adam"}, adam_kind.options, {}),
                             .moments = parse_moment_formats(moments),
                             .seed = 3});
  std::vector<std::uint32_t> largest(1);
  std::vector<float> gradient(weights);
  for (std::uint32_t step = 1; step <= 3000; ++step) {
    for (std::size_t i = 0; i < weights; ++i)
      gradient[i] = normal_pair({.step = 100 * step, .site = 9}, i)[0];
    adam->begin_step(1e-3);
    adam->update(0,
                 {.gradient = gradient, .weights = store.parameters[0].master.values(), .largest = largest});
  }
  double sum = 0;
  for (const float v : adam->state()[1].array->values()) sum += static_cast<double>(v);
  return sum / weights;
}

TEST_CASE("BF16 to nearest biases Adam's mean square, stochastically it does not", "[moments][known]") {
  // 1 - 0.999^3000 = 0.9503 of a mean square of 1.
  CHECK(mean_square_in("") == Approx(0.95).margin(0.01));
  CHECK(mean_square_in("second_moment=bf16") == Approx(1.238).margin(0.04));
  CHECK(mean_square_in("second_moment=bf16/stochastic") == Approx(0.95).margin(0.015));
}

TEST_CASE("an optimizer names the state that it has", "[moments]") {
  ParameterStore store;
  store.add("w", Array::zeros({2}));
  const auto make = [&](const char* moments) {
    (void)sgd_kind.make(store, {.values = {{"momentum", 0.9}}, .moments = parse_moment_formats(moments)});
  };
  CHECK_NOTHROW(make("velocity=bf16"));
  CHECK_NOTHROW(make("*=bf16"));
  check_says(message_of<InvalidArgument>([&] { make("second_moment=bf16"); }),
             {"moments", "velocity", "second_moment"});
}

}  // namespace
}  // namespace halfscope::moment_formats_test
