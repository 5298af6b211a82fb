// Recording forwards and replaying backwards.
#include "sim/tape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

void divide(Array& gradient, double divisor) {
  rescale(gradient, 1 / divisor);
}

InvalidArgument refusal(std::string_view operation, const std::string& layer) {
  return InvalidArgument(
      fmt::format("layer {}: automatic mixed precision refuses {}, whose gradient overflows FP16; compute it "
                  "from logits, or set deny = {}",
                  layer, operation, operation));
}

}  // namespace

Precision Tape::precision_of(OperationList list, std::span<TensorRef const> inputs) const {
  if (list != OperationList::infer)
    return list == OperationList::allow ? Precision::reduced : Precision::fp32;
  // Without inputs it reads parameters alone, such as the rows of an embedding.
  const bool stored_fp32 = inputs.empty() && policy().parameters == StoredParameters::fp32;
  const bool wide = std::any_of(inputs.begin(), inputs.end(), [&](TensorRef input) {
    return nodes_[input.index].precision == Precision::fp32;
  });
  return wide || stored_fp32 ? Precision::fp32 : Precision::reduced;
}

TensorRef Tape::cast_input(const std::string& name, TensorRef x, std::size_t index) {
  Array copy = to_dtype(value(x).clone(), DType::f32);
  const std::string own = name + ".cast" + (index == 0 ? "" : std::to_string(index));
  caster_->cast(copy, own, Role::activation);
  const bool trains = needs_gradient(x);
  Backward backward = nullptr;
  if (trains) backward = [x](Tape& t, Array gradient) { t.add_gradient(x, std::move(gradient)); };
  nodes_.push_back(
      {.name = own, .value = std::move(copy), .backward = std::move(backward), .needs_gradient = trains});
  return {nodes_.size() - 1};
}

void Tape::begin(OperationId operation, const std::string& name, std::initializer_list<TensorRef*> inputs) {
  std::vector<TensorRef> tensors;
  for (const TensorRef* input : inputs) tensors.push_back(*input);
  begin(operation, name, tensors);
  std::size_t next = 0;
  for (TensorRef* input : inputs) *input = tensors[next++];
}

void Tape::begin(OperationId operation, const std::string& name, std::span<TensorRef> inputs) {
  const OperationList list = policy().list_of(operation, name);
  if (list == OperationList::refuse) throw refusal(operation.entry().name, name);
  begun_ = {operation, list, precision_of(list, inputs)};
  for (std::size_t i = 0; i < inputs.size() && begun_.precision == Precision::reduced; ++i) {
    if (nodes_[inputs[i].index].precision == Precision::fp32) inputs[i] = cast_input(name, inputs[i], i);
  }
  caster_->compute_in(begun_.precision);
}

TensorRef Tape::input(std::string name, Array value) {
  begin("input", name);
  const TensorRef data = record({.name = std::move(name), .value = std::move(value)});
  nodes_[data.index].needs_gradient = false;
  return data;
}

std::optional<std::size_t> Tape::cached(const Parameter& parameter, Precision precision) const {
  const auto found = std::ranges::find_if(
      nodes_, [&](const Node& node) { return node.parameter == &parameter && node.precision == precision; });
  if (found == nodes_.end()) return std::nullopt;
  if (found->version != parameter.version)
    throw RuntimeFailure("parameter " + parameter.name +
                         " was updated after its cast for this forward pass; " +
                         "end the pass before the update");
  return found - nodes_.begin();
}

TensorRef Tape::parameter(Parameter& parameter) {
  const Precision precision =
      begun_.operation ? policy().parameter_precision(*begun_.operation, begun_.list) : Precision::reduced;
  const std::optional<std::size_t> first = cached(parameter, precision);
  const bool cast_anew = precision == Precision::reduced && policy().cast_cache == CastCache::off;
  if (!first) make_working_copy(parameter, precision);
  nodes_.push_back({.name = parameter.name,
                    .precision = precision,
                    .parameter = &parameter,
                    .tied_to = cast_anew ? std::nullopt : first,
                    .needs_gradient = phase_ == Phase::training && !parameter.frozen,
                    .version = parameter.version});
  return {nodes_.size() - 1};
}

void Tape::make_working_copy(Parameter& parameter, Precision precision) {
  if (precision == Precision::fp32) return;
  caster_->compute_in(Precision::reduced);
  if (policy().quantizer(Role::weight).is_identity()) {
    parameter.working = {};  // what a tape of another policy may have left
  } else {
    parameter.working = parameter.master.clone();
    caster_->cast(parameter.working, parameter.name, Role::weight);
  }
  caster_->compute_in(begun_.precision);
}

TensorRef Tape::record(Operation operation) {
  if (operation.rounds == Rounds::yes) caster_->cast(operation.value, operation.name, Role::activation);
  caster_->compute_in(Precision::reduced);
  const Begun begun = std::exchange(begun_, {});
  const bool trains = phase_ == Phase::training;
  nodes_.push_back({.name = std::move(operation.name),
                    .operation = begun.operation,
                    .precision = begun.precision,
                    .value = std::move(operation.value),
                    .backward = trains ? std::move(operation.backward) : nullptr,
                    .needs_gradient = trains});
  return {nodes_.size() - 1};
}

const Array& Tape::value(TensorRef tensor) const {
  const Node& node = nodes_[tensor.index];
  if (node.parameter == nullptr) return node.value;
  return node.precision == Precision::fp32 ? node.parameter->master : node.parameter->weight();
}

std::vector<TapeEntry> Tape::entries() const {
  std::vector<TapeEntry> entries;
  entries.reserve(nodes_.size());
  std::size_t segment = 1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const bool kept = node.dropped == 0;
    entries.push_back({node.name, node.operation, node.precision, node.parameter,
                       kept ? static_cast<std::int64_t>(value({i}).size()) : node.dropped,
                       kept ? 0 : segment});
    if (node.checkpoint) ++segment;
  }
  return entries;
}

TensorRef Tape::checkpoint(TensorRef x, Segment segment) {
  const std::size_t first = nodes_.size();
  const TensorRef y = segment(*this, x);
  if (phase_ == Phase::evaluation || y.index < first) return y;
  if (y.index + 1 != nodes_.size()) throw RuntimeFailure("a checkpoint's last operation is not its output");
  for (std::size_t i = first; i < nodes_.size(); ++i) {
    nodes_[i].backward = nullptr;
    if (i == y.index) break;
    nodes_[i].dropped = static_cast<std::int64_t>(nodes_[i].value.size());
    nodes_[i].value = {};
  }
  nodes_[y.index].checkpoint = std::make_shared<const Checkpoint>(Checkpoint{first, x, std::move(segment)});
  return y;
}

void Tape::recompute(std::size_t output, TensorRef loss) {
  const std::shared_ptr<const Checkpoint> own = nodes_[output].checkpoint;
  const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(own->first);
  std::vector<Node> earlier(std::make_move_iterator(first), std::make_move_iterator(nodes_.end()));
  nodes_.resize(own->first);
  for (std::size_t i = output + 1; i < own->first + earlier.size(); ++i) {
    earlier[i - own->first].backward = nullptr;
    if (i != loss.index) earlier[i - own->first].value = {};
  }
  run_unobserved(*own);
  if (nodes_.size() != output + 1)
    throw RuntimeFailure("a checkpoint's segment is another when it runs again");
  for (std::size_t i = own->first; i <= output; ++i) {
    nodes_[i].gradient = std::move(earlier[i - own->first].gradient);
    nodes_[i].carried_scale = earlier[i - own->first].carried_scale;
  }
  for (std::size_t i = output + 1 - own->first; i < earlier.size(); ++i)
    nodes_.push_back(std::move(earlier[i]));
}

void Tape::run_unobserved(const Checkpoint& checkpoint) {
  TrackerList nobody;
  Caster unobserved(*caster_, nobody);
  struct Restored {
    Tape& tape;
    Caster* observed;
    ~Restored() {
      tape.caster_ = observed;
      tape.recomputing_ = false;
    }
  } const restored{*this, std::exchange(caster_, &unobserved)};
  recomputing_ = true;
  (void)checkpoint.segment(*this, checkpoint.x);
}

void Tape::add_gradient(TensorRef tensor, Array gradient, Rounds rounds) {
  Node& node = nodes_[tensor.index];
  if (!node.needs_gradient) return;
  const double carried = node.parameter != nullptr ? carried_.weight : carried_.activation;
  // Computed from what the layer has scaled; a weight gradient is not to carry that.
  if (carried != carried_.activation) divide(gradient, carried_.activation / carried);
  accumulate(node, std::move(gradient), carried, rounds);
}

void Tape::accumulate(Node& node, Array gradient, double carried, Rounds rounds) {
  const bool of_weight = node.parameter != nullptr, first = node.gradient.empty();
  if (!first) {
    const double largest = caster_->layerwise().value_or(LayerwiseOptions{}).largest;
    carried = bring_to_one_scale({node.gradient, node.carried_scale}, {gradient, carried}, largest);
    gradient = to_dtype(std::move(gradient), DType::f32);
    add(node.gradient.view(), gradient.values());
  }
  node.gradient = std::move(gradient);
  node.carried_scale = carried;
  const bool narrows = running_ == Precision::fp32 && node.precision == Precision::reduced;
  if (first && rounds == Rounds::no && !narrows) return;
  caster_->carry(carried);
  caster_->compute_in(node.precision);
  caster_->cast(node.gradient, node.name, of_weight ? Role::weight_gradient : Role::activation_gradient);
  caster_->compute_in(running_);
  caster_->carry(carried_.activation);
}

const Parameter* Tape::weight_of(std::size_t index) const {
  const Parameter* largest = nullptr;
  while (index-- > 0 && nodes_[index].parameter != nullptr) {
    const Parameter* parameter = nodes_[index].parameter;
    if (parameter->master.shape().size() < 2) continue;
    if (largest == nullptr || parameter->master.size() > largest->master.size()) largest = parameter;
  }
  return largest;
}

void Tape::begin_backward(std::size_t index) {
  Node& node = nodes_[index];
  running_ = node.precision;
  caster_->compute_in(running_);
  carried_ = {node.carried_scale, node.carried_scale};
  caster_->carry(node.carried_scale);
  const Parameter* weight = caster_->layerwise() ? weight_of(index) : nullptr;
  if (weight == nullptr) return;
  const double factor =
      layer_scale(node.gradient, weight->weight(), node.carried_scale, *caster_->layerwise());
  if (factor == 1) return;
  const DType storage = node.gradient.dtype();
  rescale(node.gradient, factor);
  carried_.activation *= factor;
  caster_->carry(carried_.activation);
  // Made larger its numbers stay the format's own, made smaller they may not.
  if (factor < 1) caster_->cast(node.gradient, node.name, Role::activation_gradient);
  node.gradient = to_dtype(std::move(node.gradient), storage);
}

void Tape::finish_parameter(Node& node) {
  if (node.tied_to) {
    // It has been rounded already, so that alone it stays what it is.
    accumulate(nodes_[*node.tied_to], std::move(node.gradient), node.carried_scale, Rounds::no);
    return;
  }
  divide(node.gradient, node.carried_scale);
  Array& sum = node.parameter->gradient;
  if (sum.empty()) {
    sum = std::move(node.gradient);
    return;
  }
  sum = to_dtype(std::move(sum), DType::f32);
  add(node.gradient.view(), sum.values());
}

void Tape::backward(TensorRef loss, float loss_scale) {
  caster_->begin_pass(TrainingPass::backward);
  carried_ = {};
  for (const Node& node : nodes_) {
    if (node.parameter != nullptr) node.parameter->gradient = {};
  }
  add_gradient(loss, Array::from({}, {loss_scale}), Rounds::no);
  for (std::size_t i = loss.index + 1; i-- > 0;) {
    if (nodes_[i].gradient.empty()) continue;
    if (nodes_[i].checkpoint) recompute(i, loss);
    Node& node = nodes_[i];
    if (node.parameter != nullptr) {
      finish_parameter(node);
    } else if (node.backward) {
      begin_backward(i);
      node.backward(*this, std::move(node.gradient));
    }
  }
  running_ = Precision::reduced;
  caster_->compute_in(running_);
  caster_->carry(1);
}

}  // namespace halfscope
