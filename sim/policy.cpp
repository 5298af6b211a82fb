// The named precision policies.
#include "sim/policy.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace halfscope {

std::string to_string(const ScopedAccumulate& scoped) {
  return to_string(scoped.model) + (scoped.layers == "*" ? "" : "@" + scoped.layers);
}

ScopedAccumulate parse_scoped_accumulate(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {.model = parse_accumulate_model(text)};
  return {.model = parse_accumulate_model(text.substr(0, at)), .layers = std::string(text.substr(at + 1))};
}

AccumulateModel PrecisionPolicy::reductions_in(std::string_view layer) const {
  const bool applies = fnmatch(reductions.layers.c_str(), std::string(layer).c_str(), 0) == 0;
  return applies ? reductions.model : ScopedAccumulate{}.model;
}

AccumulateModel default_products(const PrecisionPolicy& policy) {
  constexpr std::array multiplied{Role::weight, Role::activation, Role::activation_gradient};
  for (const FloatFormat& format : {fp16, bf16}) {
    const auto has_format = [&](Role role) { return policy.quantizer(role).format == format; };
    if (!std::all_of(multiplied.begin(), multiplied.end(), has_format)) continue;
    return {.format = format, .order = AccumulateOrder::tensor_core, .core = {TensorCoreGeneration::hopper}};
  }
  return PrecisionPolicy{}.products;
}

DType native_storage(const Quantizer& quantizer) {
  if (quantizer.format == fp16) return DType::f16;
  return quantizer.format == bf16 ? DType::bf16 : DType::f32;
}

void check_native(const PrecisionPolicy& policy) {
  for (const Role role : {Role::weight, Role::activation, Role::activation_gradient, Role::weight_gradient}) {
    const Quantizer& quantizer = policy.quantizer(role);
    if (quantizer.format == fp32 || native_storage(quantizer) != DType::f32) continue;
    throw InvalidArgument("execution = native: no memory is of " + std::string(name_of(role)) + " = " +
                          to_string(quantizer) + "; give fp16, bf16 or fp32, or execution = emulated");
  }
  if (policy.products.order != AccumulateOrder::cublas) return;
  const DType activation = native_storage(policy.quantizer(Role::activation));
  for (const Role role : {Role::weight, Role::activation_gradient}) {
    if (native_storage(policy.quantizer(role)) == activation) continue;
    throw InvalidArgument("accumulate = " + to_string(policy.products) + ": " + std::string(name_of(role)) +
                          " and activation have memory of two kinds; give them one format, or another model");
  }
}

PrecisionPolicy fp32_policy() {
  return {};
}

PrecisionPolicy fp16_mixed_policy() {
  const Quantizer half{.format = fp16};
  PrecisionPolicy policy = fp32_policy()
                               .with(Role::weight, half)
                               .with(Role::activation, half)
                               .with(Role::activation_gradient, half)
                               .with(Role::weight_gradient, half);
  policy.products = default_products(policy);
  return policy;
}

PrecisionPolicy fp16_no_master_policy() {
  return fp16_mixed_policy().with(Role::master_weight, {.format = fp16});
}

PrecisionPolicy fp16_pure_policy() {
  return fp16_no_master_policy().with(Role::optimizer_state, {.format = fp16});
}

}  // namespace halfscope
