// Training of two networks in turn: whose weights a loss moves, scalers of its own or one for all, the
// metric.
#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include <halfscope/io/file.hpp>

#include "sim/models/models.hpp"
#include "sim/models/parts/sample_distance.hpp"
#include "sim/tape/stored_weights.hpp"
#include "sim/train/build.hpp"
#include "sim/train/memory.hpp"
#include "sim/train/start_weights.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::adversarial_training_test {
namespace {

TrainConfig adversarial(const char* policy = "fp32", const char* loss_scale = "none",
                        const char* model = "dcgan") {
  TrainConfig config{
      .steps = 12, .batch = 8, .learning_rate = 1e-3, .policy = policy, .loss_scale = loss_scale};
  config.model = model;
  config.optimizer_options["beta1"] = 0.5;
  config.observe_every = 0;
  return config;
}

/// The values of all weights whose name begins with `network`.
std::vector<float> weights(Trainer& trainer, std::string_view network) {
  std::vector<float> values;
  for (const NamedArray& tensor : trainer.checkpoint().tensors) {
    if (!tensor.name.starts_with(std::string(model_prefix) + std::string(network))) continue;
    if (tensor.name.find("running") != std::string::npos) continue;
    values.insert(values.end(), tensor.array.values().begin(), tensor.array.values().end());
  }
  return values;
}

bool has_gradient(const ParameterStore& store) {
  return std::ranges::all_of(store.parameters, [](const Parameter& p) {
    return std::ranges::any_of(p.gradient.values(), [](float x) { return x != 0; });
  });
}

/// A model with the parameters of one of its networks frozen, and a tape.
struct OneLoss {
  explicit OneLoss(const char* policy = "fp32", Model (*make)(const ModelSpec&) = dcgan_kind.make)
      : model(make({.example_shape = {8, 8, 1}, .class_count = 4, .seed = 3})),
        caster(find_in_table("policy", policy, policy_table).make(), 3, nobody) {
    caster.begin_step({.step = 5});
  }
  void freeze(const ParameterStore& store) {
    for (Parameter& parameter : const_cast<ParameterStore&>(store).parameters) parameter.frozen = true;
  }
  [[nodiscard]] static Batch batch() {
    const std::array<std::int64_t, 4> examples{0, 1, 2, 3};
    return small_dataset.batch(Split::train, examples);
  }

  TrackerList nobody;
  Model model;
  Caster caster;
  Tape tape{caster, Phase::training};
};

TEST_CASE("each loss has gradients for the weights of its own network alone", "[adversarial]") {
  SECTION("the discriminator's") {
    OneLoss one;
    const TensorRef loss = one.model.forward(one.tape, OneLoss::batch()).loss;
    one.tape.backward(loss, 1);
    CHECK(has_gradient(*one.model.store));
    for (const Parameter& parameter : one.model.further[0].store->parameters)
      CHECK(parameter.gradient.empty());
  }
  SECTION("the generator's") {
    OneLoss one;
    one.freeze(*one.model.store);
    const TensorRef loss = one.model.further[0].loss(one.tape, OneLoss::batch());
    one.tape.backward(loss, 1);
    CHECK(has_gradient(*one.model.further[0].store));
    for (const Parameter& parameter : one.model.store->parameters) CHECK(parameter.gradient.empty());
  }
}

/// The value of the operation called `name`.
Array value_of(const Tape& tape, std::string_view name) {
  const std::vector<TapeEntry> entries = tape.entries();
  const auto found = std::ranges::find(entries, name, &TapeEntry::name);
  REQUIRE(found != entries.end());
  return tape.value({static_cast<std::size_t>(found - entries.begin())}).clone();
}

TEST_CASE("both losses of a step see the same made images", "[adversarial]") {
  for (const char* policy : {"fp32", "fp16_mixed"}) {
    OneLoss one(policy);
    (void)one.model.forward(one.tape, OneLoss::batch());
    Tape second(one.caster, Phase::training);
    (void)one.model.further[0].loss(second, OneLoss::batch());
    const Array made = value_of(one.tape, "made"), generated = value_of(second, "generator.tanh");
    CHECK(std::ranges::equal(made.values(), generated.values()));
    // Other noise in the next step, and in each micro-batch.
    one.caster.begin_step({.step = 6});
    Tape later(one.caster, Phase::training);
    (void)one.model.forward(later, OneLoss::batch());
    CHECK_FALSE(std::ranges::equal(made.values(), value_of(later, "made").values()));
  }
}

TEST_CASE("statistics of the generator learn once a step", "[adversarial]") {
  OneLoss one;
  const ParameterStore& generator = *one.model.further[0].store;
  const Array before = generator.buffers[0].value.clone();
  (void)one.model.forward(one.tape, OneLoss::batch());
  CHECK(std::ranges::equal(before.values(), generator.buffers[0].value.values()));
  (void)one.model.further[0].loss(one.tape, OneLoss::batch());
  CHECK_FALSE(std::ranges::equal(before.values(), generator.buffers[0].value.values()));
}

/// -log of what the discriminator gives the truth of `layer`'s images, 1 or 0; the mean over them.
double cross_entropy(const Tape& tape, const std::string& layer, double truth) {
  const Array answers = value_of(tape, layer + ".fc");
  double sum = 0;
  for (const float answer : answers.values())
    sum += std::log1p(std::exp(truth == 1 ? -double{answer} : double{answer}));
  return sum / static_cast<double>(answers.size());
}

TEST_CASE("losses are the cross entropies of the discriminator's answers", "[adversarial]") {
  // An exponential, the sum and the quotient of a probability, its logarithm, three additions, a division and
  // the sum of both losses: nine roundings, each to 2^-24 of numbers below twice the loss.
  constexpr double roundings = 9 * 0x1p-23;
  for (const auto make : {dcgan_kind.make, dcgan_logits_kind.make}) {
    OneLoss one("fp32", make);
    const float loss = one.tape.value(one.model.forward(one.tape, OneLoss::batch()).loss).item();
    const double expected = cross_entropy(one.tape, "real", 1) + cross_entropy(one.tape, "made", 0);
    CHECK(loss == Approx(expected).epsilon(roundings));
    Tape second(one.caster, Phase::training);
    const float further = second.value(one.model.further[0].loss(second, OneLoss::batch())).item();
    CHECK(further == Approx(cross_entropy(second, "judged", 1)).epsilon(roundings));
  }
}

/// The discriminator's loss of a run's first batch, before any update.
float first_loss(const TrainConfig& config) {
  const RunSettings settings = parsed(config);
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const Model model = make_model(settings, small_dataset);
  Sampler sampler(small_dataset.size(Split::train), config.batch, seed);
  const Batch batch = small_dataset.batch(Split::train, sampler.indices(0));
  TrackerList nobody;
  Caster caster(settings.policy, seed, nobody);
  caster.begin_step({.step = 1, .loss_scale = 1});
  Tape tape(caster, Phase::training);
  return tape.value(model.forward(tape, batch).loss).item();
}

TEST_CASE("both networks learn, and one alone does not move the other", "[adversarial]") {
  for (const char* model : {"dcgan", "dcgan_logits"}) {
    const TrainConfig config = adversarial("fp16_mixed", "1", model);
    Trainer trainer(config, small_dataset);
    const std::vector<float> real = weights(trainer, "discriminator"), made = weights(trainer, "generator");
    REQUIRE(real.size() == 16 * 16 + 16 * 16 * 32 + 32 * 2 + 16 * 32 * 64 + 64 * 2 + 65);
    REQUIRE(made.size() == 64 * 64 + 64 * 2 + 16 * 64 * 32 + 32 * 2 + 16 * 32 * 16 + 16 * 2 + 16 * 16);
    const StepRecord record = trainer.step();
    CHECK_FALSE(record.diverged);
    REQUIRE(record.further.size() == 1);
    CHECK(record.further[0].name == "generator");
    CHECK(record.loss == first_loss(config));
    CHECK(std::isfinite(record.further[0].loss));
    CHECK(weights(trainer, "discriminator") != real);
    CHECK(weights(trainer, "generator") != made);
  }
}

/// The small data set with an infinite pixel in every image of step `step`: the discriminator sees it, the
/// generator does not.
class InfiniteStep final : public Dataset {
 public:
  InfiniteStep(std::int64_t step, const TrainConfig& config) {
    Sampler sampler(size(Split::train), config.batch, static_cast<std::uint64_t>(config.seed));
    const auto indices = sampler.indices(step - 1);
    planted_.assign(indices.begin(), indices.end());
  }
  [[nodiscard]] std::int64_t size(Split split) const override { return small_dataset.size(split); }
  [[nodiscard]] Shape example_shape() const override { return small_dataset.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return small_dataset.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = small_dataset.batch(split, indices);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (std::ranges::count(planted_, indices[i]) > 0)
        batch.inputs[i * 64] = std::numeric_limits<float>::infinity();
    }
    return batch;
  }

 private:
  std::vector<std::int64_t> planted_;
};

struct Scales {
  double discriminator, generator;
  friend bool operator==(const Scales&, const Scales&) = default;
};

Scales scales_of(const StepRecord& record) {
  return {record.scale, record.further.at(0).scale};
}

TEST_CASE("an infinity in one loss skips that loss's update, and halves its own scale or the shared one",
          "[adversarial]") {
  for (const char* scalers : {"each", "shared"}) {
    INFO(scalers);
    TrainConfig config = adversarial("fp16_mixed", "dynamic");
    config.scaler_options = {{"initial_scale", 64}};
    config.loss_scalers = scalers;
    const InfiniteStep dataset(2, config);
    Trainer trainer(config, dataset);
    CHECK_FALSE(trainer.step().skipped);
    const std::vector<float> real = weights(trainer, "discriminator"), made = weights(trainer, "generator");
    const StepRecord record = trainer.step();
    CHECK(record.skipped);
    CHECK_FALSE(record.further.at(0).skipped);
    CHECK(scales_of(record) == Scales{64, 64});
    CHECK(weights(trainer, "discriminator") == real);
    CHECK(weights(trainer, "generator") != made);
    CHECK(scales_of(trainer.step()) == Scales{32, scalers == std::string("shared") ? 32.0 : 64.0});
  }
}

TEST_CASE("loss scalers are each or shared", "[adversarial]") {
  TrainConfig config;
  check_says(message_of<InvalidArgument>([&] { set_field(config, "loss_scalers", "share"); }),
             {"loss_scalers = 'share'", "shared"});
}

TEST_CASE("a stopped training of two networks ends with the bytes of an unbroken one", "[adversarial]") {
  for (const char* scalers : {"each", "shared"}) {
    TrainConfig config = adversarial("fp16_mixed", "dynamic");
    config.scaler_options = {{"initial_scale", 0x1p24}};
    config.loss_scalers = scalers;
    config.checkpoint_every = 5;
    config.observe_every = 4;
    const TemporaryFolder whole, broken;
    const Records expected = run_in(whole.path(), config);
    const RunFolder folder(broken.path(), {"experiment", "arm", config.seed});
    CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(8)), Killed);
    CHECK(run_in(broken.path(), config) == expected);
    const auto file = [](const TemporaryFolder& root, const char* name) {
      return read_file(root.path() / "experiment/arm/seed0" / name);
    };
    CHECK(file(whole, "samples.safetensors") == file(broken, "samples.safetensors"));
    const Json summary = parse_json(file(whole, "summary.json"), "summary.json");
    CHECK(summary.at("skipped").get<int>() > 0);
    CHECK(summary.at("further_losses").at("generator").at("skipped").get<int>() > 0);
    CHECK(summary.at("further_losses").at("generator").at("final_scale").get<double>() < 0x1p24);
    CHECK(expected.at("metrics").find(R"("further_losses":[{"name":"generator","loss":)") !=
          std::string::npos);
  }
}

TEST_CASE("autocast refuses the loss of probabilities before anything is trained, not that of logits",
          "[adversarial]") {
  check_says(message_of<InvalidArgument>(
                 [] { check_training(parsed(adversarial("autocast_cuda", "dynamic")), small_dataset); }),
             {"layer real.loss", "binary_cross_entropy", "from logits"});
  check_training(parsed(adversarial("autocast_cuda", "dynamic", "dcgan_logits")), small_dataset);
  // A rule may name a layer of either loss.
  TrainConfig config = adversarial("autocast_cuda", "dynamic", "dcgan_logits");
  config.operations.deny = "conv_transpose2d@generator.deconv2,conv2d@judged.*";
  check_training(parsed(config), small_dataset);
}

/// The weights of a classifier after a few steps.
class Judge {
 public:
  Judge() {
    Trainer trainer({.steps = 20, .batch = 16, .learning_rate = 3e-3, .policy = "fp32"}, small_dataset);
    for (int i = 0; i < 20; ++i) (void)trainer.step();
    write_safetensors(path, trainer.checkpoint());
  }
  TemporaryFolder folder;
  std::filesystem::path path = folder / "judge.safetensors";
};

Evaluation evaluated(const TrainConfig& config) {
  Trainer trainer(with_teacher(parsed(config)), small_dataset);
  return trainer.evaluate();
}

TEST_CASE("the distance is of a judge's features, and its samples are images", "[adversarial]") {
  const Judge judge;
  TrainConfig config = adversarial();
  const Evaluation drawn = evaluated(config);
  config.teacher = judge.path.string();
  const Evaluation learnt = evaluated(config);
  CHECK(drawn.metric > 0);
  CHECK(learnt.metric > 0);
  CHECK(learnt.metric != drawn.metric);
  CHECK(learnt.loss == drawn.loss);
  CHECK(learnt.samples.shape() == Shape{40, 8, 8, 1});
  CHECK(std::ranges::all_of(learnt.samples.values(), [](float x) { return std::abs(x) <= 1; }));
  CHECK(evaluated(config).metric == learnt.metric);
}

TEST_CASE("a teacher of another kind is refused", "[adversarial]") {
  const TemporaryFolder folder;
  const auto path = folder / "unet.safetensors";
  Trainer trainer(adversarial(), small_dataset);
  write_safetensors(path, trainer.checkpoint());
  TrainConfig config = adversarial();
  config.teacher = path.string();
  check_says(message_of<InvalidArgument>([&] { (void)evaluated(config); }),
             {"model dcgan", "its teacher is no cnn_bn", "conv1.weight"});
}

TEST_CASE("real images have no distance from themselves, and noise has a large one", "[adversarial]") {
  const Judge trained;
  ModelSpec spec{.example_shape = {8, 8, 1}, .class_count = 4, .seed = 1};
  ParameterStore store;
  const CnnBn judge = add_cnn_bn(store, spec);
  const auto distance = [&](const Generator& generator) {
    const std::unique_ptr<Metric> metric = make_sample_distance({generator, 64, judge});
    TrackerList nobody;
    Caster caster(fp32_policy(), 0, nobody);
    caster.begin_step({});
    const Tape tape(caster, Phase::evaluation);
    const Batch batch = OneLoss::batch();
    metric->add(tape, {}, batch);
    return metric->value();
  };
  const double same =
      distance([](Tape& tape, const Array&) { return tape.input("x", OneLoss::batch().inputs); });
  const double black = distance([](Tape& tape, const Array&) {
    return tape.input("x", Array::zeros({4, 8, 8, 1}));
  });
  CHECK(same >= 0);
  CHECK(same < 1e-9 * black);
  const double broken = distance([](Tape& tape, const Array&) {
    Array images = Array::zeros({4, 8, 8, 1});
    images[3] = std::numeric_limits<float>::quiet_NaN();
    return tape.input("x", std::move(images));
  });
  CHECK(std::isnan(broken));
}

TEST_CASE("memory counts the weights of both networks once, and the larger loss's activations",
          "[adversarial]") {
  const ModelSpec spec{.example_shape = {8, 8, 1}, .class_count = 4, .initial = InitialWeights::unset};
  const auto make_batch = [](std::int64_t count) {
    return small_dataset.batch(Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
  };
  const Model model = dcgan_kind.make(spec);
  const NetworkElements network = count_elements(model, make_batch, {});
  std::int64_t weights = 0, of_losses[2] = {0, 0};
  for (const Parameter& parameter : model.store->parameters)
    weights += static_cast<std::int64_t>(parameter.master.size());
  for (const Parameter& parameter : model.further[0].store->parameters)
    weights += static_cast<std::int64_t>(parameter.master.size());
  CHECK(network.parameters() == weights);
  for (const LayerElements& layer : network.layers) of_losses[layer.loss] += layer.outputs;
  CHECK(of_losses[0] > 0);
  CHECK(of_losses[1] > 0);
  const std::vector<MemoryItem> items = memory_of(network, {fp32_policy(), 2});
  const auto kept = std::ranges::find(items, "activation", &MemoryItem::name);
  CHECK(kept->elements == std::max(of_losses[0], of_losses[1]));
}

}  // namespace
}  // namespace halfscope::adversarial_training_test
