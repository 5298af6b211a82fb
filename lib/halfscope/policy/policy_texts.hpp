// The texts of a policy: what TOML, `--set` and Python's mappings say, and its one parser.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/policy/policy.hpp>

namespace halfscope {

/// A policy by name, or a format of the network's tensors beside FP32 master weights, and what changes it; an
/// empty text leaves that to the policy.
struct PolicyTexts {
  std::string policy = "fp32";
  std::array<std::string, enum_names<Role>.size()> roles{};  ///< FORMAT[/ROUNDING][/OVERFLOW]
  std::string order{};                                       ///< order of products
  std::string sum_order{};  ///< order of other sums, "ORDER" or "ORDER@LAYERS"
  std::string operands{};   ///< rules behind those of the policy
};

/// "policy", the roles, "order", "sum_order" and "operands".
[[nodiscard]] std::vector<std::string_view> policy_keys();
/// Throws InvalidArgument where `text` is none for the key.
void check_policy_text(std::string_view key, const std::string& text);
/// "KEY = 'TEXT': WHY".
[[nodiscard]] InvalidArgument refused_text(std::string_view key, std::string_view text, std::string_view why);
/// Throws InvalidArgument for a key that is none of `policy_keys`, and for a text that is none for the key.
void set_policy_text(PolicyTexts& texts, std::string_view key, const std::string& text);

/// The policy of the table, or the network's tensors in a format. Throws InvalidArgument for neither.
[[nodiscard]] PrecisionPolicy named_policy(const std::string& name);

/// The policy that texts say: roles, then operands, of whose rules and those of the policy the later holds,
/// then orders, by default those of the formats. Throws InvalidArgument where texts are wrong, or an order
/// rounds operands that have formats of their own.
[[nodiscard]] PrecisionPolicy parse_policy(const PolicyTexts& texts);

}  // namespace halfscope
