// Builds and applies inception modules and their auxiliary heads.
#include "sim/models/parts/inception.hpp"

#include <fmt/format.h>

#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/normalised_convolution.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace {

constexpr float first_bias = 0.2f;

MapShape pooled(const MapShape& map, const PoolWindow& window) {
  return {window.count(map.height), window.count(map.width), map.channels};
}

Border padding_of(const FilterSpec& filter) {
  return filter.padding.value_or(Border{filter.rows / 2, filter.columns / 2});
}

TensorRef pool(Tape& tape, TensorRef x, const std::string& name, const Branch& branch) {
  switch (branch.pooling) {
    case BranchPool::average:
      return average_pool(tape, name, x, branch.window);
    case BranchPool::maximum:
      return max_pool(tape, name, x, branch.window);
    case BranchPool::none:
      break;
  }
  return x;
}

}  // namespace

InceptionBuilder::InceptionBuilder(ParameterStore& store, const ModelSpec& spec, InceptionNorm norm)
    : store_(&store),
      spec_(&spec),
      norm_(norm),
      map_{spec.example_shape.at(0), spec.example_shape.at(1), spec.example_shape.at(2)} {}

ActiveConvolution InceptionBuilder::add(const std::string& name, const FilterSpec& filter,
                                        MapShape& map) const {
  const std::int64_t out = at_width(*spec_, filter.out);
  const Border padding = padding_of(filter);
  Parameter& weight = add_filter(*store_, *spec_, name, {filter.rows, filter.columns, map.channels, out});
  map = {(map.height + 2 * padding.rows - filter.rows) / filter.stride + 1,
         (map.width + 2 * padding.columns - filter.columns) / filter.stride + 1, out};
  ActiveConvolution layers{
      name, {.weight = weight, .stride = filter.stride, .padding = padding}, std::nullopt};
  if (norm_ == InceptionNorm::batch_norm)
    layers.norm.emplace(add_batch_norm(*store_, *spec_, name + ".bn", out));
  else
    layers.convolution.bias = &store_->add(name + ".bias", constant_weights({out}, first_bias));
  return layers;
}

ActiveConvolution InceptionBuilder::convolution(const std::string& name, const FilterSpec& filter) {
  return add(name, filter, map_);
}

InceptionModule InceptionBuilder::module(const std::string& name, const std::vector<BranchSpec>& branches) {
  InceptionModule module{name, {}};
  MapShape all{0, 0, 0};
  for (const BranchSpec& spec : branches) {
    Branch& branch = module.branches.emplace_back(Branch{{}, {}, spec.pooling, spec.window});
    const std::string of_branch = fmt::format("{}.branch{}", name, module.branches.size());
    MapShape map = spec.pooling == BranchPool::none ? map_ : pooled(map_, spec.window);
    for (const FilterSpec& filter : spec.chain)
      branch.chain.push_back(add(fmt::format("{}.conv{}", of_branch, branch.chain.size() + 1), filter, map));
    std::int64_t channels = spec.ends.empty() ? map.channels : 0;
    for (const FilterSpec& filter : spec.ends) {
      MapShape end = map;
      branch.ends.push_back(add(fmt::format("{}.end{}", of_branch, branch.ends.size() + 1), filter, end));
      channels += end.channels;
    }
    all = {map.height, map.width, all.channels + channels};
  }
  map_ = all;
  return module;
}

void InceptionBuilder::pool(const PoolWindow& window) {
  map_ = pooled(map_, window);
}

TensorRef apply(Tape& tape, TensorRef x, const ActiveConvolution& layers) {
  x = conv2d(tape, layers.name, x, layers.convolution);
  if (layers.norm) x = batch_norm(tape, layers.name + ".bn", x, *layers.norm);
  return relu(tape, layers.name + ".relu", x);
}

TensorRef apply(Tape& tape, TensorRef x, const InceptionModule& module) {
  std::vector<TensorRef> parts;
  for (std::size_t i = 0; i < module.branches.size(); ++i) {
    const Branch& branch = module.branches[i];
    TensorRef y = pool(tape, x, fmt::format("{}.branch{}.pool", module.name, i + 1), branch);
    for (const ActiveConvolution& layers : branch.chain) y = apply(tape, y, layers);
    if (branch.ends.empty()) parts.push_back(y);
    for (const ActiveConvolution& layers : branch.ends) parts.push_back(apply(tape, y, layers));
  }
  return concat_channels(tape, module.name + ".concat", parts);
}

AuxiliaryHead add_auxiliary_head(ParameterStore& store, const ModelSpec& spec,
                                 const InceptionBuilder& builder, const std::string& name) {
  InceptionBuilder head = builder;
  head.pool(auxiliary_window);
  ActiveConvolution reduce = head.convolution(name + ".conv", {.out = 128});
  const std::int64_t flat = head.map().height * head.map().width * head.map().channels;
  const std::int64_t hidden = at_width(spec, 1024);
  return {.name = name,
          .reduce = std::move(reduce),
          .fc1 = add_dense_layer(store, spec, {name + ".fc1", flat, hidden}),
          .fc2 = add_dense_layer(store, spec, {name + ".fc2", hidden, spec.class_count, 0.5f})};
}

TensorRef apply(Tape& tape, TensorRef x, const AuxiliaryHead& head) {
  x = average_pool(tape, head.name + ".pool", x, auxiliary_window, AverageOver::image);
  x = linear(tape, head.name + ".fc1", apply(tape, x, head.reduce), head.fc1);
  x = dropout(tape, head.name + ".drop", relu(tape, head.name + ".relu", x), head.dropout);
  return linear(tape, head.name + ".fc2", x, head.fc2);
}

}  // namespace halfscope
