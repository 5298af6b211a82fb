// Builds Inception v3, of "Rethinking the Inception Architecture" (Szegedy et al., CVPR 2016), with the
// channels of its public implementations.
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
namespace inception_v3 {
namespace {

/// From so many pixels a side on the stem and the reductions see no border, and the stem's first convolution
/// and second pool have stride 2; below, every map keeps its size but where it is halved.
constexpr std::int64_t large_side = 128;

/// How the network is laid out for images of a size.
struct Layout {
  bool large;
  PoolWindow halves;             ///< windows of 3x3 every 2 pixels
  std::optional<Border> border;  ///< zeros around a map that a convolution halves, and around the stem's 3x3
};

Layout layout_for(const Shape& image) {
  if (std::min(image.at(0), image.at(1)) < large_side)
    return {false, {.size = 3, .stride = 2, .padding = 1}, std::nullopt};
  return {true, {.size = 3, .stride = 2}, Border{}};
}

/// Factorised into 5x5 = 3x3 behind 3x3, on the largest maps.
std::vector<BranchSpec> module_a(std::int64_t behind_pool) {
  return {{.chain = {{.out = 64}}},
          {.chain = {{.out = 48}, {.out = 64, .rows = 5}}},
          {.chain = {{.out = 64}, {.out = 96, .rows = 3}, {.out = 96, .rows = 3}}},
          {.chain = {{.out = behind_pool}}, .pooling = BranchPool::average}};
}

std::vector<BranchSpec> first_reduction(const Layout& layout) {
  const auto halving = [&](std::int64_t out) {
    return FilterSpec{.out = out, .rows = 3, .stride = 2, .padding = layout.border};
  };
  return {{.chain = {halving(384)}},
          {.chain = {{.out = 64}, {.out = 96, .rows = 3}, halving(96)}},
          {.pooling = BranchPool::maximum, .window = layout.halves}};
}

FilterSpec row_of_7(std::int64_t out) {
  return {.out = out, .rows = 1, .columns = 7};
}
FilterSpec column_of_7(std::int64_t out) {
  return {.out = out, .rows = 7, .columns = 1};
}

/// Factorised into 7x7 = 7x1 behind 1x7, with `middle` channels between them.
std::vector<BranchSpec> module_b(std::int64_t middle) {
  return {
      {.chain = {{.out = 192}}},
      {.chain = {{.out = middle}, row_of_7(middle), column_of_7(192)}},
      {.chain = {{.out = middle}, column_of_7(middle), row_of_7(middle), column_of_7(middle), row_of_7(192)}},
      {.chain = {{.out = 192}}, .pooling = BranchPool::average}};
}

std::vector<BranchSpec> second_reduction(const Layout& layout) {
  const auto halving = [&](std::int64_t out) {
    return FilterSpec{.out = out, .rows = 3, .stride = 2, .padding = layout.border};
  };
  return {{.chain = {{.out = 192}, halving(320)}},
          {.chain = {{.out = 192}, row_of_7(192), column_of_7(192), halving(192)}},
          {.pooling = BranchPool::maximum, .window = layout.halves}};
}

/// Factorised into 3x3 = 1x3 beside 3x1, on the smallest maps.
std::vector<BranchSpec> module_c() {
  const std::vector<FilterSpec> ends{{.out = 384, .rows = 1, .columns = 3},
                                     {.out = 384, .rows = 3, .columns = 1}};
  return {{.chain = {{.out = 320}}},
          {.chain = {{.out = 384}}, .ends = ends},
          {.chain = {{.out = 448}, {.out = 384, .rows = 3}}, .ends = ends},
          {.chain = {{.out = 192}}, .pooling = BranchPool::average}};
}

/// Average pool, 1x1 to 128, a filter as large as the map, up to 5x5, to 768; linear to the classes.
struct Head {
  ActiveConvolution reduce, whole;
  LinearParameters output;
};

struct InceptionV3 {
  Layout layout;
  std::vector<ActiveConvolution> stem;
  std::vector<InceptionModule> before_head, behind_head;
  Head head;
  LinearParameters output;
  float dropout, label_smoothing;
};

LinearParameters add_output(ParameterStore& store, const ModelSpec& spec, const InceptionBuilder& builder,
                            const std::string& name) {
  return add_dense_layer(store, spec, {name, builder.map().channels, spec.class_count, 0.5f});
}

Head add_head(ParameterStore& store, const ModelSpec& spec, InceptionBuilder builder) {
  builder.pool(auxiliary_window);
  ActiveConvolution reduce = builder.convolution("aux.conv1", {.out = 128});
  const MapShape& map = builder.map();
  ActiveConvolution whole = builder.convolution("aux.conv2", {.out = 768,
                                                              .rows = std::min<std::int64_t>(map.height, 5),
                                                              .columns = std::min<std::int64_t>(map.width, 5),
                                                              .padding = Border{}});
  return {std::move(reduce), std::move(whole), add_output(store, spec, builder, "aux.fc")};
}

std::vector<ActiveConvolution> add_stem(InceptionBuilder& builder, const Layout& layout) {
  std::vector<ActiveConvolution> stem;
  const auto add = [&](const FilterSpec& filter) {
    stem.push_back(builder.convolution(fmt::format("conv{}", stem.size() + 1), filter));
  };
  add({.out = 32, .rows = 3, .stride = layout.large ? 2 : 1, .padding = layout.border});
  add({.out = 32, .rows = 3, .padding = layout.border});
  add({.out = 64, .rows = 3});
  builder.pool(layout.halves);
  add({.out = 80});
  add({.out = 192, .rows = 3, .padding = layout.border});
  if (layout.large) builder.pool(layout.halves);
  return stem;
}

InceptionV3 add_layers(ParameterStore& store, const ModelSpec& spec) {
  const Layout layout = layout_for(spec.example_shape);
  InceptionBuilder builder(store, spec, InceptionNorm::batch_norm);
  std::vector<ActiveConvolution> stem = add_stem(builder, layout);
  std::vector<InceptionModule> before_head{
      builder.module("mixed5b", module_a(32)),  builder.module("mixed5c", module_a(64)),
      builder.module("mixed5d", module_a(64)),  builder.module("mixed6a", first_reduction(layout)),
      builder.module("mixed6b", module_b(128)), builder.module("mixed6c", module_b(160)),
      builder.module("mixed6d", module_b(160)), builder.module("mixed6e", module_b(192))};
  Head head = add_head(store, spec, builder);
  std::vector<InceptionModule> behind_head{builder.module("mixed7a", second_reduction(layout)),
                                           builder.module("mixed7b", module_c()),
                                           builder.module("mixed7c", module_c())};
  return {layout,
          std::move(stem),
          std::move(before_head),
          std::move(behind_head),
          std::move(head),
          add_output(store, spec, builder, "fc"),
          spec.fp32(dropout_option),
          spec.fp32(label_smoothing_option)};
}

TensorRef stem_of(Tape& tape, TensorRef x, const InceptionV3& net) {
  for (std::size_t i = 0; i < 3; ++i) x = apply(tape, x, net.stem[i]);
  x = max_pool(tape, "pool1", x, net.layout.halves);
  for (std::size_t i = 3; i < net.stem.size(); ++i) x = apply(tape, x, net.stem[i]);
  return net.layout.large ? max_pool(tape, "pool2", x, net.layout.halves) : x;
}

TensorRef apply(Tape& tape, TensorRef x, const Head& head) {
  x = average_pool(tape, "aux.pool", x, auxiliary_window, AverageOver::image);
  x = apply(tape, apply(tape, x, head.reduce), head.whole);
  return linear(tape, "aux.fc", global_average_pool(tape, "aux.pool2", x), head.output);
}

BatchOutcome forward(Tape& tape, const Batch& batch, const InceptionV3& net) {
  TensorRef x = stem_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
  for (const InceptionModule& module : net.before_head) x = apply(tape, x, module);
  std::vector<TensorRef> auxiliary;
  if (tape.phase() == Phase::training) auxiliary.push_back(apply(tape, x, net.head));
  for (const InceptionModule& module : net.behind_head) x = apply(tape, x, module);
  x = dropout(tape, "drop", global_average_pool(tape, "pool", x), net.dropout);
  return classify(tape, {"inception_v3", net.label_smoothing}, linear(tape, "fc", x, net.output), auxiliary,
                  batch);
}

}  // namespace
}  // namespace inception_v3

namespace {

Model make_inception_v3(const ModelSpec& spec) {
  using namespace inception_v3;
  check_takes_images("inception_v3", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const InceptionV3 net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, net); };
  return model;
}

}  // namespace

constexpr ModelKind inception_v3_kind{
    make_inception_v3,
    {with_default(width_option, 0.125), dropout_option, label_smoothing_option, batch_norm_epsilon_option}};

}  // namespace halfscope
