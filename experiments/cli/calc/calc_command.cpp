// halfscope calc: one operation on numbers of any format, with its flags.
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "experiments/cli/calc/calc_dot.hpp"
#include "experiments/cli/calc/calc_explain.hpp"
#include "experiments/cli/calc/calc_number.hpp"
#include "experiments/cli/calc/calc_stream.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/format_option.hpp"

namespace halfscope {
namespace {

struct CalcOptions {
  std::string operation;
  std::vector<std::string> values;
  std::string format, rounding, overflow, from;  ///< empty where left out
  std::string seed = "0", tensor_amax;
  DotOptions dot;
  bool from_stdin = false, explain = false;
};

std::uint64_t parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc{} && end == text.data() + text.size()) return seed;
  throw InvalidArgument(
      fmt::format("--seed {}: give an integer from 0 to 18446744073709551615", quoted(text)));
}

CalcRequest dot_request(const CalcOptions& options, const CalcOperation& operation) {
  if (!options.format.empty() || !options.rounding.empty() || !options.overflow.empty() ||
      !options.from.empty()) {
    throw InvalidArgument(
        "dot takes --order, --input and --output; --format, --from, --rounding and --overflow are for "
        "the other operations");
  }
  if (!options.tensor_amax.empty())
    throw InvalidArgument("--tensor-amax is for round; dot takes the largest magnitudes of a and of b");
  const DotProduct dot = parse_dot_product(options.dot);
  return {&operation, {dot.output}, parse_seed(options.seed), {}, dot};
}

std::string_view or_default(const std::string& given, std::string_view otherwise) {
  return given.empty() ? otherwise : std::string_view(given);
}

/// The format with what --rounding and --overflow add to it, each once.
Quantizer quantizer_of(const CalcOptions& options) {
  std::string text(or_default(options.format, "fp16"));
  if (!options.rounding.empty())
    text += fmt::format("/{}", name_of(parse_enum<Rounding>("rounding", options.rounding)));
  if (!options.overflow.empty())
    text += fmt::format("/{}", name_of(parse_enum<Overflow>("overflow policy", options.overflow)));
  return parse_quantizer_option(text);
}

CalcRequest block_request(const CalcOptions& options, const CalcOperation& operation) {
  if (operation.name != "round")
    throw InvalidArgument(fmt::format(
        "{} works on numbers of formats without blocks; block formats are for round", operation.name));
  if (!options.rounding.empty() || !options.overflow.empty()) {
    throw InvalidArgument(
        "--rounding and --overflow are for formats without blocks; a block format has them in its name, as "
        "in "
        "mxfp4/stochastic, and saturates");
  }
  const auto format = std::get<BlockFormat>(parse_tensor_format_option(options.format));
  BlockRequest block{
      format, parse_format_option(or_default(options.from, "fp32")), {}, parse_seed(options.seed)};
  if (!options.tensor_amax.empty()) block.tensor_amax = parse_tensor_amax(options.tensor_amax, format);
  return {&operation, {}, {}, {}, {}, block};
}

CalcRequest request_of(const CalcOptions& options) {
  const CalcOperation& operation = find_in_table("operation", options.operation, calc_operations());
  if (operation.operands == any_number) return dot_request(options, operation);
  const DotOptions& dot = options.dot;
  if (!dot.order.empty() || !dot.input.empty() || !dot.output.empty()) {
    throw InvalidArgument(
        fmt::format("--order, --input and --output are for dot; {} takes --format", operation.name));
  }
  if (is_block_format_name(options.format)) return block_request(options, operation);
  if (!options.tensor_amax.empty())
    throw InvalidArgument("--tensor-amax is for block formats with a scale of the tensor, such as nvfp4");
  if (!options.from.empty() && operation.name != "round") {
    throw InvalidArgument(fmt::format("--from is for round; operands of {} are of --format", operation.name));
  }
  const FloatFormat from = parse_format_option(or_default(options.from, "fp32"));
  return {&operation, quantizer_of(options), parse_seed(options.seed), from, {}};
}

std::string answer_of(const CalcRequest& request, Words words, AnswerStyle style) {
  std::string text;
  if (request.block) {
    if (style == AnswerStyle::explained) return explained_block(*request.block, words, 0);
    append_block(text, *request.block, words, 0);
    return text;
  }
  const CalcAnswer answer = evaluate(request, words, 0);
  if (style == AnswerStyle::explained) return explained(request, answer) + explained_operands(request, words);
  append_answer(text, request, answer);
  return text;
}

void calculate(const CalcOptions& options) {
  const CalcRequest request = request_of(options);
  if (!options.from_stdin) {
    const std::vector<std::string_view> words(options.values.begin(), options.values.end());
    std::cout << answer_of(request, words, options.explain ? AnswerStyle::explained : AnswerStyle::bits);
    return;
  }
  if (!options.values.empty()) {
    throw InvalidArgument(fmt::format("--stdin takes the operands from standard input; leave out '{}'",
                                      options.values.front()));
  }
  answer_standard_input(request, options.explain ? AnswerStyle::explained : AnswerStyle::bits);
}

}  // namespace

void add_calc_command(CLI::App& app) {
  auto options = std::make_shared<CalcOptions>();
  CLI::App* command =
      app.add_subcommand("calc", "one exact operation: hex bits of the result, and its flags");
  std::string operations = "one of";
  for (const CalcOperation& operation : calc_operations()) {
    operations += fmt::format("{} {}", &operation == calc_operations().data() ? "" : ",", operation.name);
  }
  command->add_option("OPERATION", options->operation, operations)->required();
  command->add_option(
      "VALUES", options->values,
      "bit patterns (0x3c00) or numbers (-1.5, 6e-8, 0x1.8p-3, inf, nan), which go to the nearest "
      "of the format; -- before the first if one is -inf or starts with -.");
  command->add_flag(
      "--explain", options->explain,
      "the value in decimal, flags by name, and the operands; with --stdin empty lines and # comments "
      "are passed over");
  command->add_option(
      "--format", options->format,
      "format of operands and result: fp16 by default, or as fp8_e4m3/toward_zero/saturate; of round "
      "also a block format, whose values are one block");
  command->add_option("--from", options->from,
                      "format of the bit patterns that round takes; fp32 by default");
  command->add_option("--tensor-amax", options->tensor_amax,
                      "largest magnitude of the tensor, for round to nvfp4; by default the block's");
  command->add_option("--rounding", options->rounding, "rounding of the result; nearest_even by default");
  command->add_option("--overflow", options->overflow, "infinity (default) or saturate");
  command->add_option(
      "--order", options->dot.order,
      "order of the sum of dot, see 'halfscope list orders', or a block-scaled unit: mxf8f6f4, mxf4, "
      "mxf4nvf4; its flags compare the result with the exact sum: 01 differs, 05 overflowed, 10 NaN out of "
      "numbers");
  command->add_option(
      "--input", options->dot.input,
      "format of a and b of dot, by default the order's; of a block-scaled unit a block format, or "
      "two with a comma, to which FP32 numbers are brought");
  command->add_option(
      "--output", options->dot.output,
      "format of c and the result of dot; by default fp32 for a tensor or matrix core, else the order's");
  command->add_option("--seed", options->seed, "seed of stochastic rounding; 0 by default");
  command->add_flag("--stdin", options->from_stdin, "operands from standard input, one operation per line");
  command->callback([options] { calculate(*options); });
}

}  // namespace halfscope
