// Builds DCGAN: a generator of images, and the discriminator whose answers it learns from.
#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>

#include "sim/models/models.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/sample_distance.hpp"
#include "sim/tape/filled.hpp"
#include "sim/tape/kept_buffers.hpp"
#include "sim/tape/stored_weights.hpp"

namespace halfscope {
namespace dcgan {
namespace {

constexpr float deviation = 0.02f, leaky_slope = 0.2f;  // Radford et al., ICLR 2016, section 3
constexpr std::int64_t noise_size = 64, kernel = 4;
constexpr std::array<std::int64_t, 3> generator_channels{64, 32, 16}, discriminator_channels{16, 32, 64};
constexpr std::int64_t reduction = 8;  // the images' sides shrink so far by three strides of 2

/// Form of the cross entropy between the discriminator's answer and the truth.
enum class AdversarialLoss : std::uint8_t {
  probabilities,  ///< as published: of a sigmoid's output
  logits,         ///< the sigmoid's inputs
};

Parameter& add_weight(ParameterStore& store, const ModelSpec& spec, const std::string& layer,
                      const Shape& shape) {
  const std::string name = layer + ".weight";
  return store.add(name, layer_weights(spec, shape, deviation, name));
}

BatchNormParameters add_norm(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                             std::int64_t channels) {
  const BatchNormParameters norm = add_batch_norm(store, spec, name, channels);
  norm.gamma.master = normal_weights({channels}, deviation, spec.seed, norm.gamma.name);
  for (float& value : norm.gamma.master.values()) value += 1;
  return norm;
}

struct GeneratorBlock {
  ConvTranspose2dParameters deconvolution;
  BatchNormParameters norm;
};

struct GeneratorNetwork {
  std::vector<GeneratorBlock> blocks{};
  std::optional<ConvTranspose2dParameters> images{};
};

/// Noise to images: one pixel to an eighth of each side, then three times twice as many.
GeneratorNetwork add_generator(ParameterStore& store, const ModelSpec& spec) {
  const Shape& images = spec.example_shape;
  GeneratorNetwork network;
  std::int64_t in = noise_size;
  for (const std::int64_t out : generator_channels) {
    const std::size_t index = network.blocks.size() + 1;
    const std::string name = fmt::format("generator.deconv{}", index);
    const bool first = index == 1;
    const Shape shape =
        first ? Shape{images[0] / reduction, images[1] / reduction, out, in} : Shape{kernel, kernel, out, in};
    Parameter& weight = add_weight(store, spec, name, shape);
    const auto geometry = first ? ConvTranspose2dParameters{.weight = weight}
                                : ConvTranspose2dParameters{weight, nullptr, 2, Border{1, 1}};
    network.blocks.push_back({geometry, add_norm(store, spec, fmt::format("generator.bn{}", index), out)});
    in = out;
  }
  const std::string last = fmt::format("generator.deconv{}", network.blocks.size() + 1);
  Parameter& weight = add_weight(store, spec, last, {kernel, kernel, images[2], in});
  network.images.emplace(ConvTranspose2dParameters{weight, nullptr, 2, Border{1, 1}});
  return network;
}

TensorRef generate(Tape& tape, const GeneratorNetwork& network, Array noise) {
  noise.reshape({noise.extent(0), 1, 1, noise_size});
  TensorRef x = tape.input("generator.noise", std::move(noise));
  int index = 0;
  for (const GeneratorBlock& block : network.blocks) {
    ++index;
    x = conv_transpose2d(tape, fmt::format("generator.deconv{}", index), x, block.deconvolution);
    x = batch_norm(tape, fmt::format("generator.bn{}", index), x, block.norm);
    x = relu(tape, fmt::format("generator.relu{}", index), x);
  }
  x = conv_transpose2d(tape, fmt::format("generator.deconv{}", index + 1), x, *network.images);
  return tanh(tape, "generator.tanh", x);
}

struct DiscriminatorBlock {
  Conv2dParameters convolution;
  std::optional<BatchNormParameters> norm;  ///< none of the first
};

struct DiscriminatorNetwork {
  std::vector<DiscriminatorBlock> blocks{};
  std::optional<LinearParameters> answer{};
  AdversarialLoss form{};
};

DiscriminatorNetwork add_discriminator(ParameterStore& store, const ModelSpec& spec, AdversarialLoss form) {
  const Shape& images = spec.example_shape;
  DiscriminatorNetwork network{.form = form};
  std::int64_t in = images[2];
  for (const std::int64_t out : discriminator_channels) {
    const std::size_t index = network.blocks.size() + 1;
    Parameter& weight =
        add_weight(store, spec, fmt::format("discriminator.conv{}", index), {kernel, kernel, in, out});
    DiscriminatorBlock block{{.weight = weight, .stride = 2, .padding = Border{1, 1}}, std::nullopt};
    if (index > 1) block.norm.emplace(add_norm(store, spec, fmt::format("discriminator.bn{}", index), out));
    network.blocks.push_back(std::move(block));
    in = out;
  }
  const std::int64_t pixels = images[0] / reduction * (images[1] / reduction);
  Parameter& weight = add_weight(store, spec, "discriminator.fc", {pixels * in, 1});
  Parameter& bias = store.add("discriminator.fc.bias", constant_weights({1}, 0));
  network.answer.emplace(LinearParameters{weight, bias});
  return network;
}

/// The loss of the answers to `images`, of which all are real (truth 1) or made (0). Layers begin with
/// `prefix`.
TensorRef judge(Tape& tape, const std::string& prefix, const DiscriminatorNetwork& network, TensorRef images,
                float truth) {
  TensorRef x = images;
  int index = 0;
  for (const DiscriminatorBlock& block : network.blocks) {
    ++index;
    x = conv2d(tape, fmt::format("{}.conv{}", prefix, index), x, block.convolution);
    if (block.norm) x = batch_norm(tape, fmt::format("{}.bn{}", prefix, index), x, *block.norm);
    x = leaky_relu(tape, fmt::format("{}.leaky_relu{}", prefix, index), x, leaky_slope);
  }
  x = linear(tape, prefix + ".fc", x, *network.answer);
  Array targets = filled(tape.value(x).shape(), truth);
  if (network.form == AdversarialLoss::logits)
    return sigmoid_cross_entropy(tape, prefix + ".loss", x, std::move(targets));
  x = sigmoid(tape, prefix + ".sigmoid", x);
  return binary_cross_entropy(tape, prefix + ".loss", x, std::move(targets));
}

/// The noise (count, 64) of this step: the same for every loss.
Array draw_noise(const Tape& tape, std::int64_t count) {
  const RandomStream step = tape.random_stream("generator.noise");
  // The attempts of a normal number count up the stream's step: each step is a site of its own.
  const RandomStream stream{step.seed, 0, step.bits(0)};
  Array noise({count, noise_size}, Device::cpu);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = normal_pair(stream, i)[0];
  return noise.to(active_device());
}

/// Both networks, and the stores that outlive them.
struct Networks {
  GeneratorNetwork generator;
  DiscriminatorNetwork discriminator;
  ParameterStore* generator_store = nullptr;

  /// Images as the step's generator makes them, which no tracker observes and no gradient leaves.
  [[nodiscard]] Array made_images(const Tape& tape, std::int64_t count) const {
    const KeptBuffers running_statistics({generator_store});
    TrackerList nobody;
    Caster caster(tape.caster(), nobody);
    Tape own(caster, tape.phase(), {.micro_batch = tape.options().micro_batch});
    return own.value(generate(own, generator, draw_noise(own, count))).clone();
  }

  [[nodiscard]] TensorRef discriminator_loss(Tape& tape, const Batch& batch) const {
    const TensorRef real = tape.input("real", batch.inputs.to(active_device()));
    const TensorRef of_real = judge(tape, "real", discriminator, real, 1);
    const TensorRef made = tape.input("made", made_images(tape, batch.inputs.extent(0)));
    const TensorRef of_made = judge(tape, "made", discriminator, made, 0);
    return total_loss(tape, "loss", std::array{of_real, of_made});
  }

  /// That of images which the discriminator is to take for real.
  [[nodiscard]] TensorRef generator_loss(Tape& tape, const Batch& batch) const {
    const TensorRef images = generate(tape, generator, draw_noise(tape, batch.inputs.extent(0)));
    return judge(tape, "judged", discriminator, images, 1);
  }
};

std::string_view name_of(AdversarialLoss form) {
  return form == AdversarialLoss::logits ? "dcgan_logits" : "dcgan";
}

void check_images(std::string_view model, const Shape& shape) {
  check_takes_images(model, shape);
  if (shape.at(0) % reduction == 0 && shape.at(1) % reduction == 0) return;
  throw InvalidArgument(fmt::format(
      "model {} doubles three times: images need sides that are multiples of {}, not {}; the data set "
      "fashion_mnist_32 has them",
      model, reduction, to_string(shape)));
}

/// Throws where the weights are not those of the model's judge.
void take_weights(std::string_view model, const SafetensorsFile& weights, ParameterStore& judge) {
  try {
    for (Parameter& parameter : judge.parameters)
      parameter.master = weight_of(weights, parameter.name, parameter.master.shape());
    for (Buffer& buffer : judge.buffers) buffer.value = weight_of(weights, buffer.name, buffer.value.shape());
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("model {}: its teacher is no cnn_bn on images of the same size: {}",
                                      model, error.what()));
  }
}

Model make(const ModelSpec& spec, AdversarialLoss form) {
  check_images(name_of(form), spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, nullptr, std::make_unique<ParameterStore>()};
  model.further.push_back({"generator", std::make_unique<ParameterStore>(), nullptr});
  Objective& generator = model.further.back();
  const auto networks = std::make_shared<const Networks>(Networks{add_generator(*generator.store, spec),
                                                                  add_discriminator(*model.store, spec, form),
                                                                  generator.store.get()});
  const CnnBn classifier = add_cnn_bn(*model.teacher, spec);
  if (spec.teacher) take_weights(name_of(form), *spec.teacher, *model.teacher);

  model.forward = [networks](Tape& tape, const Batch& batch) {
    return BatchOutcome{networks->discriminator_loss(tape, batch)};
  };
  generator.loss = [networks](Tape& tape, const Batch& batch) {
    return networks->generator_loss(tape, batch);
  };
  const auto make_images = [networks](Tape& tape, Array noise) {
    return generate(tape, networks->generator, std::move(noise));
  };
  model.make_metric = [make_images, classifier] {
    return make_sample_distance({make_images, noise_size, classifier});
  };
  return model;
}

}  // namespace
}  // namespace dcgan

namespace {

Model make_dcgan(const ModelSpec& spec) {
  using namespace dcgan;
  return make(spec, AdversarialLoss::probabilities);
}

Model make_dcgan_logits(const ModelSpec& spec) {
  using namespace dcgan;
  return make(spec, AdversarialLoss::logits);
}

}  // namespace

constexpr ModelKind dcgan_kind{make_dcgan, {batch_norm_epsilon_option}};
constexpr ModelKind dcgan_logits_kind{make_dcgan_logits, {batch_norm_epsilon_option}};

}  // namespace halfscope
