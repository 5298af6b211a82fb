// Texts of operands' formats and rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include <halfscope/core/name_list.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/policy/operands.hpp>

namespace halfscope {
namespace {

constexpr std::string_view hadamard_option = "hadamard", role_format = "role", every_product = "*";
constexpr int most_history = 1 << 20, most_margin = 30;

int parse_count(std::string_view key, std::string_view digits, int low, int high) {
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  if (whole && count >= low && count <= high) return count;
  throw InvalidArgument(fmt::format("delayed scaling: {} = '{}'; give {} to {}", key, digits, low, high));
}

/// The options between the parentheses of "delayed(...)".
DelayedScaling parse_delayed(std::string_view options) {
  DelayedScaling delayed;
  for (const std::string_view option : split_outside_parentheses(options, ',')) {
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string_view key = trimmed(option.substr(0, equals));
    const std::string_view value = equals < option.size() ? trimmed(option.substr(equals + 1)) : "";
    if (key == "history") {
      delayed.history = parse_count(key, value, 1, most_history);
    } else if (key == "margin") {
      delayed.margin = parse_count(key, value, -most_margin, most_margin);
    } else if (equals == option.size() && std::ranges::count(enum_names<AmaxChoice>, key) > 0) {
      delayed.amax = parse_enum<AmaxChoice>("choice", key);
    } else {
      throw InvalidArgument(fmt::format(
          "delayed scaling: unknown option '{}'; give history=N, margin=N, max or most_recent", option));
    }
  }
  return delayed;
}

std::string to_string(const DelayedScaling& delayed) {
  std::vector<std::string> options;
  if (delayed.history != DelayedScaling{}.history)
    options.push_back(fmt::format("history={}", delayed.history));
  if (delayed.margin != 0) options.push_back(fmt::format("margin={}", delayed.margin));
  if (delayed.amax != AmaxChoice::max) options.emplace_back(name_of(delayed.amax));
  return options.empty() ? "" : fmt::format("({})", fmt::join(options, ", "));
}

void parse_option(std::string_view option, OperandFormat& format) {
  constexpr std::string_view current = "current", delayed = "delayed";
  if (option == hadamard_option) {
    format.transform = OperandTransform::hadamard;
  } else if (option == current) {
    format.scaling = TensorScaling::current;
  } else if (option == delayed) {
    format.scaling = TensorScaling::delayed;
  } else if (option.starts_with(delayed) && option.substr(delayed.size()).starts_with('(') &&
             option.ends_with(')')) {
    format.scaling = TensorScaling::delayed;
    format.delayed = parse_delayed(option.substr(delayed.size() + 1, option.size() - delayed.size() - 2));
  } else {
    throw InvalidArgument(fmt::format(
        "operand option '{}'; give hadamard, current or delayed(history=N, margin=N, max|most_recent)",
        option));
  }
}

/// A scale of the whole operand is for formats of 8 bits at most without blocks, whose elements then
/// saturate.
void finish_scaling(OperandFormat& format) {
  if (format.scaling == TensorScaling::none) return;
  auto* quantizer = std::get_if<Quantizer>(&format.format);
  if (quantizer == nullptr || code_width(quantizer->format) > 8) {
    throw InvalidArgument(
        fmt::format("operand format {}: {} scaling is for formats of at most 8 bits without blocks",
                    to_string(format.format), name_of(format.scaling)));
  }
  quantizer->overflow = Overflow::saturate;
}

InvalidArgument bad_address(std::string_view address) {
  return InvalidArgument(
      fmt::format("'{}' names no operands; give *, or [OPERATION.][PRODUCT[.SIDE]] with OPERATION one of {}, "
                  "PRODUCT one of {}, "
                  "SIDE left or right",
                  address, fmt::join(operand_operations, ", "), fmt::join(enum_names<ProductKind>, ", ")));
}

template <typename Enum>
std::optional<Enum> value_named(std::string_view name) {
  const auto found = std::ranges::find(enum_names<Enum>, name);
  if (found == enum_names<Enum>.end()) return std::nullopt;
  return static_cast<Enum>(found - enum_names<Enum>.begin());
}

void parse_address(std::string_view address, OperandRule& rule) {
  if (address == every_product) return;
  for (const std::string_view word : split_outside_parentheses(address, '.')) {
    const auto product = value_named<ProductKind>(word);
    const auto side = value_named<OperandSide>(word);
    const bool operation = std::ranges::count(operand_operations, word) > 0;
    if (operation && rule.operation.empty() && !rule.product) {
      rule.operation = word;
    } else if (product && !rule.product) {
      rule.product = product;
    } else if (side && rule.product && !rule.side) {
      rule.side = side;
    } else {
      throw bad_address(address);
    }
  }
}

std::string address_of(const OperandRule& rule) {
  std::vector<std::string_view> words;
  if (!rule.operation.empty()) words.emplace_back(rule.operation);
  if (rule.product) words.push_back(name_of(*rule.product));
  if (rule.side) words.push_back(name_of(*rule.side));
  return words.empty() ? std::string(every_product) : fmt::format("{}", fmt::join(words, "."));
}

}  // namespace

std::string to_string(const OperandFormat& format) {
  std::string text = to_string(format.format);
  if (format.scaling != TensorScaling::none) {
    Quantizer own = std::get<Quantizer>(format.format);
    own.overflow = Overflow::infinity;  // it saturates in any case
    text = to_string(own);
  }
  if (format.transform == OperandTransform::hadamard) text += fmt::format("+{}", hadamard_option);
  if (format.scaling != TensorScaling::none) text += fmt::format("+{}", name_of(format.scaling));
  if (format.scaling == TensorScaling::delayed) text += to_string(format.delayed);
  return text;
}

OperandFormat parse_operand_format(std::string_view text) {
  const std::vector<std::string_view> parts = split_outside_parentheses(text, '+');
  OperandFormat format{.format = parse_tensor_format(parts.front())};
  for (const std::string_view option : std::span(parts).subspan(1)) parse_option(option, format);
  finish_scaling(format);
  return format;
}

std::string to_string(const OperandRule& rule) {
  return fmt::format("{}={}{}", address_of(rule),
                     rule.format ? to_string(*rule.format) : std::string(role_format),
                     rule.layers == "*" ? "" : "@" + rule.layers);
}

OperandRule parse_operand_rule(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    throw InvalidArgument(
        fmt::format("operands '{}': give OPERANDS=FORMAT, such as forward.right=mxfp8_e4m3", text));
  OperandRule rule;
  parse_address(trimmed(text.substr(0, equals)), rule);
  std::string_view format = trimmed(text.substr(equals + 1));
  if (const std::size_t at = format.rfind('@'); at != std::string_view::npos) {
    rule.layers = trimmed(format.substr(at + 1));
    format = trimmed(format.substr(0, at));
    if (rule.layers.empty())
      throw InvalidArgument(fmt::format("operands '{}': give a glob of layers after @", text));
  }
  if (format != role_format) rule.format = parse_operand_format(format);
  return rule;
}

std::string to_string(std::span<const OperandRule> rules) {
  std::string text;
  for (const OperandRule& rule : rules) text += (text.empty() ? "" : ", ") + to_string(rule);
  return text;
}

std::vector<OperandRule> parse_operand_rules(std::string_view text) {
  std::vector<OperandRule> rules;
  if (trimmed(text).empty()) return rules;
  for (const std::string_view rule : split_outside_parentheses(text, ','))
    rules.push_back(parse_operand_rule(rule));
  return rules;
}

}  // namespace halfscope
