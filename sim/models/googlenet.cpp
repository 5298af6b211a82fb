// Builds GoogLeNet.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/inception.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace googlenet {
namespace {

/// Table 1 of the paper: channels of the 1x1; of the 3x3 and the 5x5 and of the 1x1 before each; of the 1x1
/// behind the pool.
struct ModuleSize {
  const char* name;
  std::int64_t one, before_three, three, before_five, five, behind_pool;
};
constexpr std::array modules{
    ModuleSize{"3a", 64, 96, 128, 16, 32, 32},     ModuleSize{"3b", 128, 128, 192, 32, 96, 64},
    ModuleSize{"4a", 192, 96, 208, 16, 48, 64},    ModuleSize{"4b", 160, 112, 224, 24, 64, 64},
    ModuleSize{"4c", 128, 128, 256, 24, 64, 64},   ModuleSize{"4d", 112, 144, 288, 32, 64, 64},
    ModuleSize{"4e", 256, 160, 320, 32, 128, 128}, ModuleSize{"5a", 256, 160, 320, 32, 128, 128},
    ModuleSize{"5b", 384, 192, 384, 48, 128, 128}};
constexpr std::array<std::size_t, 2> pools_behind{1, 6};  // 3b and 4e
constexpr std::array<std::size_t, 2> heads_behind{2, 5};  // 4a and 4d
constexpr PoolWindow overlapping{.size = 3, .stride = 2, .partial = PartialWindow::kept};
/// Caffe's, whose alpha multiplies the mean of the 5 squares.
constexpr LocalResponse response{.alpha = 1e-4f / 5, .k = 1};
/// Below so many pixels a side the first convolution is 3x3 with stride 1, and no pool is behind the third.
constexpr std::int64_t large_side = 128;
/// Dropout of the auxiliary heads, unless the setting has none; the classifier's own is the setting's, 0.4 in
/// the paper.
constexpr float head_dropout = 0.7f;

bool contains(const std::array<std::size_t, 2>& places, std::size_t place) {
  return std::ranges::find(places, place) != places.end();
}

struct GoogLeNet {
  bool large;
  std::vector<ActiveConvolution> stem;
  std::vector<InceptionModule> modules;
  std::vector<AuxiliaryHead> heads;
  LinearParameters output;
  float dropout, label_smoothing;
};

std::vector<BranchSpec> branches_of(const ModuleSize& of) {
  return {{.chain = {{.out = of.one}}},
          {.chain = {{.out = of.before_three}, {.out = of.three, .rows = 3}}},
          {.chain = {{.out = of.before_five}, {.out = of.five, .rows = 5}}},
          {.chain = {{.out = of.behind_pool}}, .pooling = BranchPool::maximum}};
}

GoogLeNet add_layers(ParameterStore& store, const ModelSpec& spec) {
  const bool large = std::min(spec.example_shape[0], spec.example_shape[1]) >= large_side;
  InceptionBuilder builder(store, spec, InceptionNorm::bias);
  std::vector<ActiveConvolution> stem;
  stem.push_back(builder.convolution("conv1", {.out = 64, .rows = large ? 7 : 3, .stride = large ? 2 : 1}));
  builder.pool(overlapping);
  stem.push_back(builder.convolution("conv2_reduce", {.out = 64}));
  stem.push_back(builder.convolution("conv2", {.out = 192, .rows = 3}));
  if (large) builder.pool(overlapping);
  std::vector<InceptionModule> layers;
  std::vector<AuxiliaryHead> heads;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    layers.push_back(
        builder.module(std::string("inception") + modules.at(i).name, branches_of(modules.at(i))));
    if (contains(pools_behind, i)) builder.pool(overlapping);
    if (!contains(heads_behind, i)) continue;
    heads.push_back(add_auxiliary_head(store, spec, builder, fmt::format("aux{}", heads.size() + 1)));
    if (spec.fp32(dropout_option) > 0) heads.back().dropout = head_dropout;
  }
  return {large,
          std::move(stem),
          std::move(layers),
          std::move(heads),
          add_dense_layer(store, spec, {"fc", builder.map().channels, spec.class_count, 0.5f}),
          spec.fp32(dropout_option),
          spec.fp32(label_smoothing_option)};
}

TensorRef stem_of(Tape& tape, TensorRef x, const GoogLeNet& net) {
  x = max_pool(tape, "pool1", apply(tape, x, net.stem[0]), overlapping);
  x = apply(tape, local_response_norm(tape, "norm1", x, response), net.stem[1]);
  x = local_response_norm(tape, "norm2", apply(tape, x, net.stem[2]), response);
  return net.large ? max_pool(tape, "pool2", x, overlapping) : x;
}

BatchOutcome forward(Tape& tape, const Batch& batch, const GoogLeNet& net) {
  TensorRef x = stem_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
  std::vector<TensorRef> auxiliary;
  for (std::size_t i = 0; i < net.modules.size(); ++i) {
    x = apply(tape, x, net.modules[i]);
    if (contains(heads_behind, i) && tape.phase() == Phase::training)
      auxiliary.push_back(apply(tape, x, net.heads[auxiliary.size()]));
    if (contains(pools_behind, i)) x = max_pool(tape, net.modules[i].name + ".pool", x, overlapping);
  }
  x = dropout(tape, "drop", global_average_pool(tape, "pool", x), net.dropout);
  return classify(tape, {"googlenet", net.label_smoothing}, linear(tape, "fc", x, net.output), auxiliary,
                  batch);
}

}  // namespace
}  // namespace googlenet

namespace {

Model make_googlenet(const ModelSpec& spec) {
  using namespace googlenet;
  check_takes_images("googlenet", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const GoogLeNet net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, net); };
  return model;
}

}  // namespace

constexpr ModelKind googlenet_kind{
    make_googlenet, {with_default(width_option, 0.125), dropout_option, label_smoothing_option}};

}  // namespace halfscope
