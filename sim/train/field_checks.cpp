// Texts looked up in their tables, or parsed.
#include "sim/train/field_checks.hpp"

#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/arithmetic/gradient_division.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "sim/data/datasets.hpp"
#include "sim/train/run_settings.hpp"
#include "sim/train/scale_probe.hpp"
#include "sim/train/what_if_updates.hpp"

namespace halfscope {

void any_text(const std::string& /*text*/) {}

void check_device(const std::string& text) {
  (void)parse_enum<Device>("device", text);
}

void check_execution(const std::string& text) {
  (void)parse_enum<Execution>("execution", text);
}

void check_schedule(const std::string& text) {
  (void)parse_enum<Schedule>("schedule", text);
}

void check_clipped_gradients(const std::string& text) {
  (void)parse_enum<ClippedGradients>("gradients", text);
}

void check_loss_scalers(const std::string& text) {
  (void)parse_enum<LossScalers>("loss scalers", text);
}

void check_model(const std::string& text) {
  (void)find_in_table("model", text, model_table);
}

void check_dataset(const std::string& text) {
  (void)find_in_table("dataset", text, datasets);
}

void check_optimizer(const std::string& text) {
  (void)find_in_table("optimizer", text, optimizer_table);
}

void check_policy(const std::string& text) {
  check_policy_text("policy", text);
}

void check_policy_from(const std::string& text) {
  if (!text.empty()) (void)parse_policy_switch(text, {});
}

void check_probe_policy(const std::string& text) {
  if (!text.empty()) check_policy(text);
}

void check_second_execution(const std::string& text) {
  if (!text.empty()) (void)parse_second_execution(text, {});
}

void check_scales(const std::string& text) {
  (void)parse_scales(text);
}

void check_weight_formats(const std::string& text) {
  (void)parse_weight_formats(text);
}

void check_trackers(const std::string& text) {
  (void)parse_trackers(text);
}

void check_roles(const std::string& text) {
  (void)parse_roles(text);
}

void check_loss_scale(const std::string& text) {
  (void)find_scaler(text);
}

void check_detail(const std::string& text) {
  (void)parse_enum<GradientDetail>("detail", text);
}

void check_role(const std::string& text) {
  check_policy_text("weight", text);
}

void check_optimizer_state(const std::string& text) {
  check_policy_text("optimizer_state", text);
}

void check_moments(const std::string& text) {
  (void)parse_moment_formats(text);
}

void check_order(const std::string& text) {
  check_policy_text("order", text);
}

void check_operations(const std::string& text) {
  (void)parse_operation_rules(OperationList::allow, text);
}

void check_cast_cache(const std::string& text) {
  (void)parse_enum<CastCache>("cast_cache", text);
}

void check_weight_sum(const std::string& text) {
  if (!text.empty()) (void)parse_enum<WeightSum>("weight sum", text);
}

void check_operands(const std::string& text) {
  check_policy_text("operands", text);
}

void check_all_reduce(const std::string& text) {
  (void)parse_all_reduce(text);
}

void check_predivide(const std::string& text) {
  (void)parse_gradient_division(text);
}

void check_sum_order(const std::string& text) {
  check_policy_text("sum_order", text);
}

}  // namespace halfscope
