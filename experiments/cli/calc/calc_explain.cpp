// The answers once more, in words.
#include "experiments/cli/calc/calc_explain.hpp"

#include <fmt/format.h>

#include <cmath>

#include <halfscope/format/encoding.hpp>

#include "experiments/cli/calc/calc_block_dot.hpp"
#include "experiments/cli/calc/calc_number.hpp"

namespace halfscope {
namespace {

constexpr std::array flag_names{std::pair{flag::inexact, "inexact"}, std::pair{flag::underflow, "underflow"},
                                std::pair{flag::overflow, "overflow"},
                                std::pair{flag::divide_by_zero, "divide by zero"},
                                std::pair{flag::invalid, "invalid"}};

/// The digits that tell the number from every other double; all of them for numbers of 16 bits.
std::string decimal(float value) {
  return fmt::format("{}", static_cast<double>(value));
}

std::string bits_of(float value, const FloatFormat& format) {
  return fmt::format("0x{:0{}x}", encode(value, format), (code_width(format) + 3) / 4);
}

std::string explained_operand(std::string_view word, const FloatFormat& format) {
  const Flagged read =
      is_bit_pattern(word) ? Flagged{parse_bit_pattern(word, format)} : round_decimal(word, {format}, 0);
  const std::string cost =
      read.flags == 0 ? "" : fmt::format("  (read as {}: {})", to_string(format), flag_words(read.flags));
  return fmt::format("  {} = {} = {}{}\n", word, bits_of(read.value, format), decimal(read.value), cost);
}

/// The format of operand `index` of `count`.
FloatFormat format_of_operand(const CalcRequest& request, std::size_t index, std::size_t count) {
  if (request.operation->operands != any_number) return request.quantizer.format;
  return index + 1 == count ? request.dot.output : request.dot.input;
}

}  // namespace

std::string flag_words(std::uint8_t flags) {
  std::string words;
  for (const auto& [bit, name] : flag_names) {
    if ((flags & bit) != 0) words += fmt::format("{}{}", words.empty() ? "" : ", ", name);
  }
  return words.empty() ? "exact" : words;
}

std::string explained(const CalcRequest& request, const CalcAnswer& answer) {
  std::string line;
  append_answer(line, request, answer);
  line.pop_back();
  const bool is_truth = request.operation->result == CalcOperation::Kind::truth;
  const std::string value = is_truth ? (answer.code != 0 ? "true" : "false")
                                     : decimal(decode(answer.code, request.quantizer.format));
  return fmt::format("{}  {}  {}\n", line, value, flag_words(answer.flags));
}

std::string explained_operands(const CalcRequest& request, Words words) {
  std::string lines;
  const bool is_round = request.operation->name == "round";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_round && !is_bit_pattern(words[i])) continue;  // rounded once, to the answer
    lines +=
        explained_operand(words[i], is_round ? request.from : format_of_operand(request, i, words.size()));
  }
  if (request.dot.blocks) lines += explained_block_dot(words, request.dot, {.seed = request.seed});
  return lines;
}

}  // namespace halfscope
