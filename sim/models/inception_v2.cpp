// Builds Inception v2: GoogLeNet with batch norm, as Ioffe & Szegedy published it (ICML 2015), which "Mixed
// Precision Training" cites in its Table 1. "Rethinking the Inception Architecture" calls another network by
// the same name.
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

namespace halfscope {
namespace inception_v2 {
namespace {

/// The paper's Figure 5: channels of the 1x1; of the 3x3 and of the 1x1 before it; of both 3x3 of the double
/// branch and of the 1x1 before them; of the 1x1 behind the pool.
struct ModuleSize {
  const char* name;
  std::int64_t one, before_three, three, before_double, twice;
  BranchPool pooling;
  std::int64_t behind_pool;  ///< 0, as `one`: the module has stride 2 and passes the pool through
};
constexpr std::array modules{ModuleSize{"3a", 64, 64, 64, 64, 96, BranchPool::average, 32},
                             ModuleSize{"3b", 64, 64, 96, 64, 96, BranchPool::average, 64},
                             ModuleSize{"3c", 0, 128, 160, 64, 96, BranchPool::maximum, 0},
                             ModuleSize{"4a", 224, 64, 96, 96, 128, BranchPool::average, 128},
                             ModuleSize{"4b", 192, 96, 128, 96, 128, BranchPool::average, 128},
                             ModuleSize{"4c", 160, 128, 160, 128, 160, BranchPool::average, 128},
                             ModuleSize{"4d", 96, 128, 192, 160, 192, BranchPool::average, 128},
                             ModuleSize{"4e", 0, 128, 192, 192, 256, BranchPool::maximum, 0},
                             ModuleSize{"5a", 352, 192, 320, 160, 224, BranchPool::average, 128},
                             ModuleSize{"5b", 352, 192, 320, 192, 224, BranchPool::maximum, 128}};
/// As GoogLeNet has them, of which the paper lists the changes: behind 4a and 4d.
constexpr std::array<std::size_t, 2> heads_behind{3, 6};
constexpr PoolWindow halves{.size = 3, .stride = 2, .padding = 1};
/// Below so many pixels a side the first convolution is 3x3 with stride 1, and no pool is behind the third.
constexpr std::int64_t large_side = 128;

bool has_head(std::size_t module) {
  return std::ranges::find(heads_behind, module) != heads_behind.end();
}

struct InceptionV2 {
  bool large;
  std::vector<ActiveConvolution> stem;
  std::vector<InceptionModule> modules;
  std::vector<AuxiliaryHead> heads;
  LinearParameters output;
  float label_smoothing;
};

std::vector<BranchSpec> branches_of(const ModuleSize& of) {
  const std::int64_t stride = of.one == 0 ? 2 : 1;
  BranchSpec three{.chain = {{.out = of.before_three}, {.out = of.three, .rows = 3, .stride = stride}}};
  BranchSpec twice{.chain = {{.out = of.before_double},
                             {.out = of.twice, .rows = 3},
                             {.out = of.twice, .rows = 3, .stride = stride}}};
  if (stride == 2) return {three, twice, {.pooling = of.pooling, .window = halves}};
  return {{.chain = {{.out = of.one}}},
          three,
          twice,
          {.chain = {{.out = of.behind_pool}}, .pooling = of.pooling}};
}

InceptionV2 add_layers(ParameterStore& store, const ModelSpec& spec) {
  const bool large = std::min(spec.example_shape[0], spec.example_shape[1]) >= large_side;
  InceptionBuilder builder(store, spec, InceptionNorm::batch_norm);
  std::vector<ActiveConvolution> stem;
  stem.push_back(builder.convolution("conv1", {.out = 64, .rows = large ? 7 : 3, .stride = large ? 2 : 1}));
  builder.pool(halves);
  stem.push_back(builder.convolution("conv2_reduce", {.out = 64}));
  stem.push_back(builder.convolution("conv2", {.out = 192, .rows = 3}));
  if (large) builder.pool(halves);
  std::vector<InceptionModule> layers;
  std::vector<AuxiliaryHead> heads;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    layers.push_back(
        builder.module(std::string("inception") + modules.at(i).name, branches_of(modules.at(i))));
    if (has_head(i))
      heads.push_back(add_auxiliary_head(store, spec, builder, fmt::format("aux{}", heads.size() + 1)));
  }
  return {large,
          std::move(stem),
          std::move(layers),
          std::move(heads),
          add_dense_layer(store, spec, {"fc", builder.map().channels, spec.class_count, 0.5f}),
          spec.fp32(label_smoothing_option)};
}

BatchOutcome forward(Tape& tape, const Batch& batch, const InceptionV2& net) {
  TensorRef x = apply(tape, tape.input("input", batch.inputs.to(active_device())), net.stem[0]);
  x = apply(tape, max_pool(tape, "pool1", x, halves), net.stem[1]);
  x = apply(tape, x, net.stem[2]);
  if (net.large) x = max_pool(tape, "pool2", x, halves);
  std::vector<TensorRef> auxiliary;
  for (std::size_t i = 0; i < net.modules.size(); ++i) {
    x = apply(tape, x, net.modules[i]);
    if (has_head(i) && tape.phase() == Phase::training)
      auxiliary.push_back(apply(tape, x, net.heads[auxiliary.size()]));
  }
  const TensorRef logits = linear(tape, "fc", global_average_pool(tape, "pool", x), net.output);
  return classify(tape, {"inception_v2", net.label_smoothing}, logits, auxiliary, batch);
}

}  // namespace
}  // namespace inception_v2

namespace {

Model make_inception_v2(const ModelSpec& spec) {
  using namespace inception_v2;
  check_takes_images("inception_v2", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const InceptionV2 net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, net); };
  return model;
}

}  // namespace

constexpr ModelKind inception_v2_kind{
    make_inception_v2,
    {with_default(width_option, 0.125), label_smoothing_option, batch_norm_epsilon_option}};

}  // namespace halfscope
