// Checks of the texts in a config's fields.
#pragma once

#include <string>

namespace halfscope {

/// Throws InvalidArgument where the text cannot be a field's value. An empty text leaves a role, the products
/// or the sums as the policy has them.
using TextCheck = void (*)(const std::string& text);

void any_text(const std::string& text);
void check_device(const std::string& text);
void check_execution(const std::string& text);
void check_schedule(const std::string& text);
void check_clipped_gradients(const std::string& text);
void check_loss_scalers(const std::string& text);
void check_model(const std::string& text);
void check_dataset(const std::string& text);
void check_optimizer(const std::string& text);
void check_policy(const std::string& text);
void check_policy_from(const std::string& text);
void check_probe_policy(const std::string& text);
void check_second_execution(const std::string& text);
void check_scales(const std::string& text);
void check_weight_formats(const std::string& text);
void check_trackers(const std::string& text);
void check_roles(const std::string& text);
void check_loss_scale(const std::string& text);
void check_detail(const std::string& text);
void check_role(const std::string& text);
void check_optimizer_state(const std::string& text);
void check_moments(const std::string& text);
void check_order(const std::string& text);
void check_operations(const std::string& text);
void check_cast_cache(const std::string& text);
void check_weight_sum(const std::string& text);
void check_operands(const std::string& text);
void check_all_reduce(const std::string& text);
void check_predivide(const std::string& text);
void check_sum_order(const std::string& text);

}  // namespace halfscope
