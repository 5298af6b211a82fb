// Keeps the FP32 tensors of a step and sums differences over them, in a fixed order.
#include "sim/train/fp32_reference.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace halfscope {
namespace {

struct Sums {
  double error = 0, exact = 0, own = 0, product = 0;

  void add(const Sums& other) {
    error += other.error;
    exact += other.exact;
    own += other.own;
    product += other.product;
  }
};

Sums difference(std::span<const float> own, double unscale, const std::vector<float>& exact) {
  Sums sums;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double x = unscale * double{own[i]}, x32 = double{exact[i]};
    sums.error += (x - x32) * (x - x32);
    sums.exact += x32 * x32;
    sums.own += x * x;
    sums.product += x * x32;
  }
  return sums;
}

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void run_with(std::unique_ptr<Tracker> tracker, const PrecisionPolicy& policy, std::uint64_t seed,
              const StepContext& context, const RepeatStep& repeat) {
  TrackerList trackers;
  trackers.push_back(std::move(tracker));
  StepObservations unused;
  Caster caster(policy, seed, trackers);
  caster.begin_step({.step = context.step,
                     .loss_scale = context.loss_scale,
                     .observations = &unused,
                     .layerwise = context.layerwise,
                     .execution = context.execution,
                     .operand_scales = context.operand_scales});
  repeat(caster, context.loss_scale);
}

}  // namespace

/// Keeps the tensors that pass by.
class Fp32Reference::Keeper final : public Tracker {
 public:
  explicit Keeper(Fp32Reference& reference) : reference_(reference) {}
  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    return reference_.roles_.contains(role) ? CastDetail::counters : CastDetail::none;
  }
  void on_cast(const CastEvent& event, StepObservations&) override {
    reference_.exact_[key_of(event.site)] = to_host(event.after);
  }

 private:
  Fp32Reference& reference_;
};

/// Compares the tensors that pass by with those of the reference.
class Fp32Reference::Comparer final : public Tracker {
 public:
  struct Result {
    std::vector<TensorKey> order;
    std::map<PartKey, Sums> sums;
  };
  Comparer(const Fp32Reference& reference, Result& result) : reference_(reference), result_(result) {}
  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    return reference_.roles_.contains(role) ? CastDetail::counters : CastDetail::none;
  }
  void on_cast(const CastEvent& event, StepObservations&) override {
    const PartKey key = key_of(event.site);
    const auto exact = reference_.exact_.find(key);
    if (exact == reference_.exact_.end()) return;
    const auto next = result_.sums.lower_bound({key.first, PartIndex{whole_step, whole_tensor}});
    if (next == result_.sums.end() || next->first.first != key.first) result_.order.push_back(key.first);
    result_.sums[key] = difference(to_host(event.after), 1 / event.site.scale, exact->second);
  }

 private:
  const Fp32Reference& reference_;
  Result& result_;
};

Fp32Reference::PartKey Fp32Reference::key_of(const Site& site) {
  return {{std::string(site.tensor), site.role}, {site.micro_batch, site.part}};
}

Fp32Reference::Fp32Reference(RoleSet roles, std::uint64_t seed, std::int64_t step, const RepeatStep& repeat)
    : roles_(roles), seed_(seed) {
  run_with(std::make_unique<Keeper>(*this), fp32_policy(), seed, {.step = step}, repeat);
}

std::vector<Fp32Comparison> Fp32Reference::compare(const PrecisionPolicy& policy, const StepContext& context,
                                                   const RepeatStep& repeat) const {
  Comparer::Result result;
  run_with(std::make_unique<Comparer>(*this, result), policy, seed_, context, repeat);
  std::vector<Fp32Comparison> records;
  records.reserve(result.order.size());
  for (const TensorKey& tensor : result.order) {
    Sums sums;
    for (auto part = result.sums.lower_bound({tensor, PartIndex{whole_step, whole_tensor}});
         part != result.sums.end() && part->first.first == tensor; ++part) {
      sums.add(part->second);
    }
    records.push_back({tensor.first, tensor.second, if_finite(std::sqrt(sums.error / sums.exact)),
                       if_finite(sums.product / std::sqrt(sums.exact * sums.own)),
                       std::isfinite(sums.own) && std::isfinite(sums.exact)});
  }
  return records;
}

Json to_json(const Fp32Comparison& record) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"tensor", record.tensor},
          {"role", std::string(name_of(record.role))},
          {"relative_error", number(record.relative_error)},
          {"cosine", number(record.cosine)}};
}

std::vector<Fp32Comparison> compare_with_fp32(const PrecisionPolicy& policy, std::uint64_t seed,
                                              const StepContext& context, const RepeatStep& repeat) {
  constexpr RoleSet compared{Role::activation, Role::activation_gradient, Role::weight_gradient};
  return Fp32Reference(compared, seed, context.step, repeat).compare(policy, context, repeat);
}

}  // namespace halfscope
