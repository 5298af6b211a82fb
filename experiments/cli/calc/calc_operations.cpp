// The table of operations, and how an answer is printed.
#include "experiments/cli/calc/calc_operations.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>

#include "experiments/cli/calc/calc_block_dot.hpp"
#include "experiments/cli/calc/calc_dot.hpp"
#include "experiments/cli/calc/calc_number.hpp"

namespace halfscope {
namespace {

CalcAnswer encoded(const Flagged& x, const CalcRequest& request) {
  return {encode(x.value, request.quantizer.format), x.flags};
}

float operand(std::string_view word, const CalcRequest& request) {
  return parse_operand(word, request.quantizer.format);
}

/// Bits of a format, or a decimal of any length: either is rounded once.
CalcAnswer round_word(Words words, const CalcRequest& request, std::uint32_t random_bits) {
  const Quantizer& q = request.quantizer;
  const bool pattern = is_bit_pattern(words[0]);
  return encoded(pattern ? convert(parse_bit_pattern(words[0], request.from), q, random_bits)
                         : round_decimal(words[0], q, random_bits),
                 request);
}

template <Flagged (*operation)(float, const Quantizer&, std::uint32_t)>
CalcAnswer of_one(Words words, const CalcRequest& request, std::uint32_t random_bits) {
  return encoded(operation(operand(words[0], request), request.quantizer, random_bits), request);
}

template <Flagged (*operation)(float, float, const Quantizer&, std::uint32_t)>
CalcAnswer of_two(Words words, const CalcRequest& request, std::uint32_t random_bits) {
  const float a = operand(words[0], request), b = operand(words[1], request);
  return encoded(operation(a, b, request.quantizer, random_bits), request);
}

template <Flagged (*operation)(float, float, float, const Quantizer&, std::uint32_t)>
CalcAnswer of_three(Words words, const CalcRequest& request, std::uint32_t random_bits) {
  const float a = operand(words[0], request), b = operand(words[1], request), c = operand(words[2], request);
  return encoded(operation(a, b, c, request.quantizer, random_bits), request);
}

template <FlaggedBool (*comparison)(float, float)>
CalcAnswer compared(Words words, const CalcRequest& request, std::uint32_t) {
  const FlaggedBool answer = comparison(operand(words[0], request), operand(words[1], request));
  return {answer.value ? 1u : 0u, answer.flags};
}

CalcAnswer dot_product(Words words, const CalcRequest& request, std::uint32_t) {
  return evaluate_dot(words, request.dot);
}

constexpr auto truth = CalcOperation::Kind::truth;
constexpr std::array table{
    CalcOperation{"round", "a number, given by its bits in --from, brought to the format", 1, round_word},
    CalcOperation{"add", "a + b", 2, of_two<add>},
    CalcOperation{"sub", "a - b", 2, of_two<sub>},
    CalcOperation{"mul", "a * b", 2, of_two<mul>},
    CalcOperation{"div", "a / b", 2, of_two<div>},
    CalcOperation{"sqrt", "square root of a", 1, of_one<sqrt>},
    CalcOperation{"fma", "a * b + c, rounded once", 3, of_three<fma>},
    CalcOperation{"rem", "a - n b, n the integer nearest to a / b", 2, of_two<rem>},
    CalcOperation{"eq", "a = b; invalid for signalling NaN", 2, compared<equal>, truth},
    CalcOperation{"lt", "a < b; invalid for NaN", 2, compared<less>, truth},
    CalcOperation{"le", "a <= b; invalid for NaN", 2, compared<less_equal>, truth},
    CalcOperation{"dot", "c + a1 b1 + ... + aK bK of the words a1 .. aK b1 .. bK c, as --order adds it up",
                  any_number, dot_product},
};

/// fmt is several times slower, and this runs once per line.
void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[(value >> (4 * i)) & 15u];
}

}  // namespace

std::span<const CalcOperation> calc_operations() {
  return table;
}

CalcAnswer evaluate(const CalcRequest& request, Words words, std::uint64_t index) {
  const CalcOperation& operation = *request.operation;
  const Quantizer& q = request.quantizer;
  if (operation.operands != any_number && words.size() != operation.operands) {
    throw InvalidArgument(fmt::format("{} takes {} operand{}, {} given", operation.name, operation.operands,
                                      operation.operands == 1 ? "" : "s", words.size()));
  }
  if (request.dot.blocks) {
    const RandomStream stream{.seed = request.seed, .step = static_cast<std::uint32_t>(index)};
    return evaluate_block_dot(words, request.dot, stream);
  }
  const bool draws = q.rounding == Rounding::stochastic;
  const std::uint32_t random_bits = draws ? RandomStream{request.seed}.bits(index) : 0;
  return operation.evaluate(words, request, random_bits);
}

void append_answer(std::string& out, const CalcRequest& request, const CalcAnswer& answer) {
  if (request.operation->result == truth) {
    out += answer.code != 0 ? '1' : '0';
  } else {
    out += "0x";
    append_hex(out, answer.code, (code_width(request.quantizer.format) + 3) / 4);
  }
  out += ' ';
  append_hex(out, answer.flags, 2);
  out += '\n';
}

}  // namespace halfscope
