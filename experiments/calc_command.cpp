// halfscope calc: one operation on numbers of any format, with its flags.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "experiments/calc_stream.hpp"
#include "experiments/commands.hpp"

namespace halfscope {
namespace {

struct CalcOptions {
  std::string operation;
  std::vector<std::string> values;
  std::string format = "fp16";
  std::string rounding = "nearest_even";
  std::string overflow = "infinity";
  std::uint64_t seed = 0;
  bool from_stdin = false;
};

void calculate(const CalcOptions& options) {
  const Quantizer quantizer{parse_format(options.format), parse_enum<Rounding>("rounding", options.rounding),
                            parse_enum<Overflow>("overflow policy", options.overflow)};
  const CalcOperation& operation = find_in_table("operation", options.operation, calc_operations());
  const CalcRequest request{&operation, quantizer, options.seed};
  if (!options.from_stdin) {
    const std::vector<std::string_view> words(options.values.begin(), options.values.end());
    std::string answer;
    append_answer(answer, request, words, 0);
    std::cout << answer;
    return;
  }
  if (!options.values.empty()) {
    throw RequestError(fmt::format("--stdin takes the operands from standard input; leave out '{}'",
                                   options.values.front()));
  }
  answer_standard_input(request);
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
  command->add_option("VALUES", options->values,
                      "bit patterns (0x3c00; for round those of fp32) or decimals, which go to the nearest "
                      "number of the format; -- before the first if one is -inf or starts with -.");
  command->add_option("--format", options->format, "of operands and result; fp16 by default");
  command->add_option("--rounding", options->rounding, "of the result; nearest_even by default");
  command->add_option("--overflow", options->overflow, "infinity (default) or saturate");
  command->add_option("--seed", options->seed, "of stochastic rounding; 0 by default");
  command->add_flag("--stdin", options->from_stdin, "operands from standard input, one operation per line");
  command->callback([options] { calculate(*options); });
}

}  // namespace halfscope
