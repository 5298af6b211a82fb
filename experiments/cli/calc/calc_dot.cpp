// Dot products on the command line: the model's answer, and an exact sum of any length to judge it by.
#include "experiments/cli/calc/calc_dot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include "experiments/cli/calc/calc_block_dot.hpp"
#include "experiments/cli/calc/calc_number.hpp"
#include "experiments/cli/format_option.hpp"

namespace halfscope {
namespace {

bool is_tensor_core(const DotProduct& dot) {
  return dot.model.order == AccumulateOrder::tensor_core;
}

bool is_matrix_unit(const DotProduct& dot) {
  return is_tensor_core(dot) || dot.model.order == AccumulateOrder::matrix_core;
}

float sum_of(const DotOperands& x, const DotProduct& dot) {
  if (is_tensor_core(dot) && dot.output != fp32)
    return halfscope::dot(x.a, x.b, x.c, product_step(dot.model, dot.output));
  return round(accumulate_products_from(x.c, x.a, x.b, dot.model), {dot.output});
}

bool is_exact(const DotOperands& x, float result) {
  ExactSum difference;
  difference.add(unpack(x.c));
  difference.add(unpack(-result));
  for (std::size_t k = 0; k < x.a.size(); ++k) difference.add(exact_product(unpack(x.a[k]), unpack(x.b[k])));
  return difference.is_zero();
}

/// A tensor core's NaN has all bits set but the sign.
std::uint32_t code_of(float result, const DotProduct& dot) {
  if (is_tensor_core(dot) && std::isnan(result)) return (1u << (code_width(dot.output) - 1)) - 1u;
  return encode(result, dot.output);
}

}  // namespace

DotOperands parse_dot_operands(Words words, const DotProduct& dot) {
  if (words.size() % 2 == 0 || words.size() < 3) {
    throw InvalidArgument(fmt::format(
        "dot takes a1 .. aK b1 .. bK c, an odd number of operands from 3 on; {} given", words.size()));
  }
  DotOperands x;
  const std::size_t terms = words.size() / 2;
  for (const std::string_view word : words.first(terms)) x.a.push_back(parse_operand(word, dot.input));
  for (const std::string_view word : words.subspan(terms, terms)) {
    x.b.push_back(parse_operand(word, dot.input));
  }
  x.c = parse_operand(words.back(), dot.output);
  return x;
}

std::uint8_t dot_flags(const DotOperands& x, float result, const FloatFormat& output, bool is_exact) {
  const auto nan = [](float value) { return std::isnan(value); };
  const bool finite = !x.any([](float value) { return !std::isfinite(value); });
  if (x.any(is_signalling) || (!finite && std::isnan(result) && !x.any(nan))) return flag::invalid;
  if (!finite) return 0;
  if (std::isfinite(result)) return is_exact ? std::uint8_t{0} : flag::inexact;
  const bool overflowed = std::isinf(result) || output.specials != Specials::ieee;
  return overflowed ? std::uint8_t{flag::overflow | flag::inexact} : flag::invalid;
}

DotProduct parse_dot_product(const DotOptions& options) {
  if (options.order.empty()) {
    throw InvalidArgument(
        "dot takes --order, one of `halfscope list orders`: tensor_core(hopper), say, or a "
        "block-scaled "
        "unit: mxf8f6f4, mxf4, mxf4nvf4");
  }
  if (is_block_scaled_unit(options.order)) return parse_block_dot(options);
  DotProduct dot{parse_accumulate_model(options.order), {}, fp32};
  dot.input = options.input.empty() ? dot.model.format : parse_format_option(options.input);
  if (!options.output.empty()) {
    dot.output = parse_format_option(options.output);
  } else {
    dot.output = is_matrix_unit(dot) ? dot.model.core.output() : dot.model.format;
  }
  if (!is_matrix_unit(dot)) return dot;
  if (!options.order.starts_with(name_of(dot.model.order)) && dot.input != dot.model.format) {
    throw InvalidArgument(fmt::format("{} multiplies numbers of {}, not of {}", options.order,
                                      to_string(dot.model.format), to_string(dot.input)));
  }
  dot.model.format = dot.input;
  if (is_tensor_core(dot)) {
    (void)product_step(dot.model, dot.output);
  } else {
    (void)matrix_core_step(dot.model.matrix_core, dot.input);
  }
  return dot;
}

CalcAnswer evaluate_dot(Words words, const DotProduct& dot) {
  const DotOperands x = parse_dot_operands(words, dot);
  const float result = sum_of(x, dot);
  const bool exact = std::isfinite(result) && is_exact(x, result);
  return {code_of(result, dot), dot_flags(x, result, dot.output, exact)};
}

}  // namespace halfscope
