// Parses switches of the policy.
#include "sim/train/policy_switch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/policy/policy_texts.hpp>

namespace halfscope {
namespace {

InvalidArgument no_switch(const std::string& text) {
  return InvalidArgument(
      fmt::format("policy_from = '{}': give step=N, policy=NAME with a step from 1 on", text));
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The values of "key=value, key=value".
std::map<std::string, std::string, std::less<>> values_by_key(const std::string& text) {
  std::map<std::string, std::string, std::less<>> values;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = without_blanks(rest.substr(0, comma));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) throw no_switch(text);
    values[std::string(without_blanks(part.substr(0, equals)))] = without_blanks(part.substr(equals + 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return values;
}

}  // namespace

PolicySwitch parse_policy_switch(const std::string& text, const PrecisionPolicy& own) {
  const auto values = values_by_key(text);
  const auto step = values.find("step"), name = values.find("policy");
  if (values.size() != 2 || step == values.end() || name == values.end()) throw no_switch(text);
  PolicySwitch result;
  const char* const end = step->second.data() + step->second.size();
  const auto [rest, error] = std::from_chars(step->second.data(), end, result.step);
  if (error != std::errc{} || rest != end || result.step < 1) throw no_switch(text);
  result.policy = named_policy(name->second);
  for (const Role role : {Role::master_weight, Role::optimizer_state})
    result.policy = result.policy.with(role, own.quantizer(role));
  result.policy.weight_sum = own.weight_sum;
  result.policy.products = default_products(result.policy);
  return result;
}

}  // namespace halfscope
