// The inception networks: the published parameters, counted by layers, and the auxiliary heads' share of the
// loss.
#include <cmath>
#include <numeric>

#include "sim/models/models.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::inception_models_test {
namespace {

std::size_t weights(const Model& model, bool heads = true) {
  std::size_t count = 0;
  for (const Parameter& parameter : model.store->parameters)
    if (heads || !parameter.name.starts_with("aux")) count += parameter.master.size();
  return count;
}

ModelSpec imagenet(std::int64_t side) {
  return {.example_shape = {side, side, 3}, .class_count = 1000, .initial = InitialWeights::unset};
}

/// A row of the paper's Table 1: its channels, and its weights in units of 1,024.
struct PublishedModule {
  std::size_t in, one, before_three, three, before_five, five, behind_pool, thousands;
  [[nodiscard]] std::size_t filters() const {
    return in * (one + before_three + before_five + behind_pool) + 9 * before_three * three +
           25 * before_five * five;
  }
  [[nodiscard]] std::size_t biases() const {
    return one + before_three + three + before_five + five + behind_pool;
  }
};
constexpr std::array googlenet_modules{PublishedModule{192, 64, 96, 128, 16, 32, 32, 159},
                                       PublishedModule{256, 128, 128, 192, 32, 96, 64, 380},
                                       PublishedModule{480, 192, 96, 208, 16, 48, 64, 364},
                                       PublishedModule{512, 160, 112, 224, 24, 64, 64, 437},
                                       PublishedModule{512, 128, 128, 256, 24, 64, 64, 463},
                                       PublishedModule{512, 112, 144, 288, 32, 64, 64, 580},
                                       PublishedModule{528, 256, 160, 320, 32, 128, 128, 840},
                                       PublishedModule{832, 256, 160, 320, 32, 128, 128, 1072},
                                       PublishedModule{832, 384, 192, 384, 48, 128, 128, 1388}};

TEST_CASE("GoogLeNet has the parameters of the paper's table, and of Caffe's with its heads", "[inception]") {
  const Model model = googlenet_kind.make(imagenet(224));
  std::size_t count = 7 * 7 * 3 * 64 + 64 + 64 * 64 + 64 + 9 * 64 * 192 + 192, published = 0;
  for (std::size_t i = 0; i < googlenet_modules.size(); ++i) {
    const PublishedModule& module = googlenet_modules.at(i);
    const std::string name =
        std::string("inception") + std::array{"3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"}.at(i);
    INFO(name);
    std::size_t ours = 0;
    for (const Parameter& parameter : model.store->parameters)
      if (parameter.name.starts_with(name)) ours += parameter.master.size();
    CHECK(ours == module.filters() + module.biases());
    count += ours;
    published += module.thousands;
    // The table's channels give other counts than its own: by 8 % at 4c, by 5 % at most elsewhere.
    const double ratio =
        static_cast<double>(module.filters()) / (1024.0 * static_cast<double>(module.thousands));
    CHECK(std::abs(ratio - 1) < (name == "inception4c" ? 0.08 : 0.055));
  }
  count += 1024 * 1000 + 1000;
  CHECK(weights(model, false) == count);
  CHECK(count == 6'998'552);
  // With the table's first convolutions, 2.7K and 112K, and its last layer, 1000K: 6.8 million.
  const double all = 1024.0 * (static_cast<double>(published) + 2.7 + 112 + 1000);
  CHECK(std::abs(static_cast<double>(count) / all - 1) < 0.01);
  // Each head: 1x1 to 128, 4x4 pixels to 1024, to the classes.
  std::size_t heads = 0;
  for (const std::size_t in : {512u, 528u})
    heads += in * 128 + 128 + 4 * 4 * 128 * 1024 + 1024 + 1024 * 1000 + 1000;
  CHECK(weights(model) == count + heads);
  CHECK(weights(model) == 13'378'280);
}

/// A convolution without bias and its batch norm.
std::size_t normalised(std::size_t area, std::size_t in, std::size_t out) {
  return area * in * out + 2 * out;
}

TEST_CASE("Inception v2 has the parameters of the paper's Figure 5", "[inception]") {
  struct Module {
    std::size_t in, one, before_three, three, before_double, twice, behind_pool;
  };
  std::size_t count = normalised(49, 3, 64) + normalised(1, 64, 64) + normalised(9, 64, 192);
  for (const Module& m :
       {Module{192, 64, 64, 64, 64, 96, 32}, Module{256, 64, 64, 96, 64, 96, 64},
        Module{320, 0, 128, 160, 64, 96, 0}, Module{576, 224, 64, 96, 96, 128, 128},
        Module{576, 192, 96, 128, 96, 128, 128}, Module{576, 160, 128, 160, 128, 160, 128},
        Module{608, 96, 128, 192, 160, 192, 128}, Module{608, 0, 128, 192, 192, 256, 0},
        Module{1056, 352, 192, 320, 160, 224, 128}, Module{1024, 352, 192, 320, 192, 224, 128}}) {
    count += normalised(1, m.in, m.one) + normalised(1, m.in, m.before_three) +
             normalised(9, m.before_three, m.three) + normalised(1, m.in, m.before_double) +
             normalised(9, m.before_double, m.twice) + normalised(9, m.twice, m.twice) +
             normalised(1, m.in, m.behind_pool);
  }
  count += 1024 * 1000 + 1000;
  const Model model = inception_v2_kind.make(imagenet(224));
  CHECK(weights(model, false) == count);
  // Public ports of its Caffe definition have a bias per channel too, and 11,295,240 weights.
  CHECK(count + 10'016 == 11'295'240);
  std::size_t heads = 0;
  for (const std::size_t in : {576u, 608u})
    heads += normalised(1, in, 128) + 4 * 4 * 128 * 1024 + 1024 + 1024 * 1000 + 1000;
  CHECK(weights(model) == count + heads);
}

TEST_CASE("Inception v3 has the published parameters", "[inception]") {
  const Model model = inception_v3_kind.make(imagenet(299));
  CHECK(weights(model) == 27'161'264);
  CHECK(weights(model, false) == 23'834'568);
}

/// Loss of two images of zeros, with labels 3 and 9.
float loss_of(const Model& model, Phase phase) {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, phase);
  const Batch batch{.inputs = Array::zeros({2, 28, 28, 1}), .labels = {3, 9}};
  return tape.value(model.forward(tape, batch).loss).item();
}

TEST_CASE("the heads add three tenths of their losses in training, and nothing in an evaluation",
          "[inception]") {
  const ModelSpec small{.example_shape = {28, 28, 1}, .class_count = 10, .options = {{"width", 0.125}}};
  struct Heads {
    Model (*make)(const ModelSpec& spec);
    double count;
  };
  for (const auto& [make, heads] :
       {Heads{googlenet_kind.make, 2}, {inception_v2_kind.make, 2}, {inception_v3_kind.make, 1}}) {
    const Model model = make(small);
    for (Parameter& parameter : model.store->parameters) {
      // No logits but for the biases: every loss is log 10.
      if (parameter.name.ends_with("fc.weight") || parameter.name.ends_with("fc2.weight"))
        std::fill_n(parameter.master.data(), parameter.master.size(), 0.0f);
    }
    CHECK(static_cast<double>(loss_of(model, Phase::training)) == Approx((1 + 0.3 * heads) * std::log(10.0)));
    CHECK(static_cast<double>(loss_of(model, Phase::evaluation)) == Approx(std::log(10.0)));
    // Heads that rule out three classes: their losses are log 7.
    for (Parameter& parameter : model.store->parameters) {
      if (!parameter.name.starts_with("aux") || !parameter.name.ends_with("bias")) continue;
      if (parameter.master.size() == 10) std::fill_n(parameter.master.data(), 3, -1e9f);
    }
    CHECK(static_cast<double>(loss_of(model, Phase::training)) ==
          Approx(std::log(10.0) + 0.3 * heads * std::log(7.0)));
  }
}

TEST_CASE("the inception networks find the bright quarter, in FP32 and FP16", "[inception][long]") {
  for (const char* model : {"googlenet", "inception_v2", "inception_v3"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      const SmallDataset dataset;
      Trainer trainer({.model = model,
                       .model_options = own_options(model, {{"dropout", 0.1}, {"label_smoothing", 0.1}}),
                       .steps = 120,
                       .batch = 16,
                       .optimizer = "adam",
                       .learning_rate = 3e-3,
                       .warmup_steps = 5,
                       .policy = policy,
                       .loss_scale = "128"},
                      dataset);
      for (int i = 0; i < 120; ++i) REQUIRE(std::isfinite(trainer.step().loss));
      CHECK(trainer.evaluate().metric > 90);
    }
  }
}

}  // namespace
}  // namespace halfscope::inception_models_test
