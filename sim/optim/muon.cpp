// Muon: matrices move along their momentum made orthogonal; all else moves as under AdamW.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/optim/adam.hpp"
#include "sim/optim/newton_schulz.hpp"
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

/// RMS of a matrix's update, times the learning rate: about that of AdamW's, so that one rate does for both
/// (Liu et al., "Muon is scalable for LLM training", 2025; `match_rms_adamw` of torch.optim.Muon).
constexpr float update_rms = 0.2f;

/// Matrices and filters, but neither tables of words nor the layer that chooses one.
bool moves_as_a_matrix(const Parameter& parameter) {
  const std::string_view name = parameter.name;
  return parameter.master.shape().size() >= 2 && name.find("embedding") == std::string_view::npos &&
         !name.starts_with("output.");
}

class Muon final : public Adam {
 public:
  Muon(const ParameterStore& store, const OptimizerOptions& options)
      : Adam(store, options),
        iteration_{static_cast<int>(option("newton_schulz_steps")),
                   {.format = {static_cast<int>(option("newton_schulz_exponent_bits")),
                               static_cast<int>(option("newton_schulz_mantissa_bits"))}}} {
    for (std::size_t i = 0; i < store.parameters.size(); ++i)
      if (moves_as_a_matrix(store.parameters[i])) slot(1, i) = {};
  }

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override { return adamw_step(learning_rate); }

  [[nodiscard]] ParameterStep parameter_step(std::size_t index, const WeightUpdate& update) override {
    if (!slot(1, index).empty()) return {update, step_rule()};
    direction_ = orthogonalised(momentum_ahead(slot(0, index), update), iteration_);
    const auto longest = static_cast<float>(std::max(direction_.extent(0), direction_.extent(1)));
    scale(direction_.view(), update_rms * std::sqrt(longest), direction_.values());
    WeightUpdate own = update;
    own.gradient = direction_.values();
    own.unscale = own.clip = 1;
    const AdamwStep& all = std::get<AdamwStep>(step_rule());
    return {own, MuonStep{.learning_rate = all.adam.learning_rate, .decay = all.decay}};
  }

  /// m = momentum m + (1 - momentum) g, rounded to the state's format; returns momentum m + (1 - momentum) g
  /// of the new m (Nesterov's), (rows, columns).
  Array momentum_ahead(Array& momentum, const WeightUpdate& update) const {
    const auto kept = static_cast<float>(option("momentum"));
    Array gradient(momentum.shape());
    scale(update.gradient, update.unscale, gradient.values());
    scale(gradient.view(), update.clip, gradient.values());
    scale(gradient.view(), 1 - kept, gradient.values());
    scale(momentum.view(), kept, momentum.values());
    add(gradient.view(), momentum.values());
    if (!state_format().is_identity()) round_in_threads(momentum.values(), state_format());
    Array ahead(momentum.shape());
    scale(momentum.view(), kept, ahead.values());
    add(gradient.view(), ahead.values());
    const std::int64_t columns = momentum.shape().back();
    ahead.reshape({static_cast<std::int64_t>(ahead.size()) / columns, columns});
    return ahead;
  }

  NewtonSchulz iteration_;
  Array direction_{};  ///< direction of the parameter at hand
};

void lint_muon(const OptimizerLint& lint) {
  lint_adamw(lint);
  lint_decay(lint, "momentum");
}

constexpr EntryOption newton_schulz_steps{"newton_schulz_steps",
                                          5,
                                          {1, 100},
                                          "of the iteration that makes an update orthogonal",
                                          OptionKind::whole_number};
constexpr EntryOption newton_schulz_exponent_bits{
    "newton_schulz_exponent_bits", 8, {2, 8}, "of the numbers of that iteration", OptionKind::whole_number};
constexpr EntryOption newton_schulz_mantissa_bits{
    "newton_schulz_mantissa_bits",
    7,
    {1, 23},
    "likewise; 8 and 7 are BF16's, 5 and 10 FP16's, 8 and 23 FP32's",
    OptionKind::whole_number};

}  // namespace

constexpr OptimizerKind muon_kind{
    make_as<Muon>,
    {{"momentum", 0.95, share_range, "share of the mean gradient of a matrix that a step keeps"},
     adam_beta1,
     adam_beta2,
     adam_epsilon,
     adam_weight_decay,
     newton_schulz_steps,
     newton_schulz_exponent_bits,
     newton_schulz_mantissa_bits},
    lint_muon};

}  // namespace halfscope
