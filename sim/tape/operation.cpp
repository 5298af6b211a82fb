// Records parameters and outputs of operations.
#include "sim/tape/operation.hpp"

#include <utility>

#include "sim/tape/tape.hpp"

namespace halfscope {

const Array& Operation::value(TensorRef tensor) const {
  return tape_->value(tensor);
}

bool Operation::needs_gradient(TensorRef tensor) const {
  return tape_->phase() == Phase::training && tape_->needs_gradient(tensor);
}

TensorRef Operation::parameter(Parameter& parameter) const {
  const Precision precision = policy().parameter_precision(listed_.id, listed_.list);
  const std::optional<std::size_t> first = tape_->cached(parameter, precision);
  const bool cast_anew = precision == Precision::reduced && policy().cast_cache == CastCache::off;
  if (!first && precision == Precision::reduced) make_working_copy(parameter);
  return tape_->append({.name = parameter.name,
                        .precision = precision,
                        .parameter = &parameter,
                        .tied_to = cast_anew ? std::nullopt : first,
                        .needs_gradient = tape_->phase() == Phase::training && !parameter.frozen,
                        .version = parameter.version});
}

void Operation::make_working_copy(Parameter& parameter) const {
  Caster& caster = *tape_->caster_;
  if (caster.policy().quantizer(Role::weight).is_identity()) {
    parameter.working = {};  // a copy that a tape of another policy may have left
    return;
  }
  parameter.working = parameter.master.clone();
  caster.cast(parameter.working, parameter.name, Role::weight, tape_->context());
}

TensorRef Operation::record(OperationOutput output) const {
  if (output.rounds == Rounds::yes)
    tape_->caster_->cast(output.value, listed_.layer, Role::activation, casts_.context());
  const bool trains = tape_->phase() == Phase::training;
  return tape_->append({.name = listed_.layer,
                        .operation = listed_.id,
                        .precision = casts_.context().precision,
                        .value = std::move(output.value),
                        .backward = trains ? std::move(output.backward) : nullptr,
                        .needs_gradient = trains});
}

}  // namespace halfscope
