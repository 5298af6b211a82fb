// Formats and casts of one operation, forward or backward.
#pragma once

#include "sim/tape/cast.hpp"

namespace halfscope {

/// A caster with the context of one operation. The caster outlives it.
class CastScope {
 public:
  CastScope(Caster& caster, const CastContext& context) : caster_(&caster), context_(context) {}

  [[nodiscard]] const CastContext& context() const { return context_; }
  /// The formats and sums of the operation's precision.
  [[nodiscard]] const PrecisionPolicy& policy() const { return caster_->policy(context_.precision); }
  /// See `Caster::storage`.
  [[nodiscard]] DType storage(Role role) const { return caster_->storage(role, context_.precision); }

  [[nodiscard]] GradientTerms gradient_terms() const { return caster_->gradient_terms(); }
  /// See `Caster::cast`.
  void cast(std::span<float> values, std::string_view tensor, Role role,
            std::int32_t part = whole_tensor) const {
    caster_->cast(values, tensor, role, context_, part);
  }
  /// See `Caster::quantise`.
  void quantise(const OperandMatrix& operand, const OperandFormat& format) const {
    caster_->quantise(operand, format, context_);
  }
  /// `column_sums`, which trackers of reductions observe.
  void sum_columns(std::string_view tensor, const ColumnTerms& terms, const AccumulateModel& model,
                   std::span<float> sums) const {
    caster_->events().sum_columns(caster_->site(tensor, Role::activation, context_), terms, model, sums);
  }

 private:
  Caster* caster_;
  CastContext context_;
};

}  // namespace halfscope
