// Options become a request, or a line that says which of them do not go together.
#include "experiments/cli/analyze/analyze_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <halfscope/arithmetic/all_reduce.hpp>

#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/format_option.hpp"
#include "experiments/cli/usage/shell_words.hpp"

namespace halfscope {
namespace {

/// Empty without ranks.
std::optional<Averaging> averaging_of(const AnalyzeOptions& options) {
  if (!options.ranks) {
    if (options.predivide)
      throw InvalidArgument("--predivide divides gradients of ranks; give --ranks N too");
    return std::nullopt;
  }
  if (!options.tensors.page.empty())
    throw InvalidArgument("--html draws tensors of one rank; leave out --ranks, or --html");
  return averaging_of(parse_gradient_division(options.predivide.value_or("ddp")), *options.ranks);
}

/// The format of a cast, without blocks.
FloatFormat cast_format(const AnalyzeOptions& options) {
  if (!is_block_format_name(options.format)) return parse_counted_format(options.format);
  std::string files;
  for (const std::string& path : options.tensors.files.paths) files += " " + shell_word(path);
  throw InvalidArgument(fmt::format(
      "--format '{}': analyze casts to formats without blocks; type: halfscope formats{} --format {}",
      options.format, files, shell_word(options.format)));
}

void add_inputs(CLI::App& command, AnalyzeOptions& options) {
  add_tensor_files(command, options.tensors);
  command
      .add_option("--against", options.request.against,
                  "a FILE of FP32 reference tensors of the same names: relative error and cosine; repeatable")
      ->allow_extra_args(false);
}

void add_judging(CLI::App& command, AnalyzeOptions& options) {
  command
      .add_option(
          "--format", options.format,
          "format of the cast: fp16, bf16, fp8_e4m3, fp8_e4m3/saturate, any eXmY; 'halfscope formats' "
          "has block formats")
      ->capture_default_str();
  command
      .add_option("--tolerance", options.tolerance,
                  "share of a tensor's sum of magnitudes that underflow may cost at a fitting scale")
      ->capture_default_str();
  command
      .add_option("--headroom", options.request.advisor.headroom_log2,
                  "binades that the recommended scale leaves below overflow, where they fit")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  command
      .add_option("--fail-on", options.fail_on,
                  "METRIC>SHARE: exit 1 where a tensor is over it, as in 'flushed>2%'; repeatable; one of " +
                      threshold_metrics())
      ->allow_extra_args(false);
}

void add_averaging(CLI::App& command, AnalyzeOptions& options) {
  command
      .add_option("--ranks", options.ranks,
                  "N: windows after the gradients of N ranks are added in this format, if all are equal")
      ->check(CLI::Range(std::int64_t{1}, most_ranks));
  command.add_option("--predivide", options.predivide,
                     "with --ranks: a factor before the sum, or a rule of 'halfscope list divisions'; ddp by "
                     "default");
}

void add_view(CLI::App& command, AnalyzeOptions& options) {
  command
      .add_option(
          "--group", options.groups,
          "adds tensors up: 'layers.*.{attn,mlp}' has a row for attn and one for mlp, 'layers.{*}' one "
          "for each layer, '{**}' one for each name in several files; repeatable")
      ->allow_extra_args(false);
  command.add_option("--sort", options.sort, fmt::format("one of {}", fmt::join(sort_key_names(), ", ")));
  command.add_option("--only", options.only, "METRIC>SHARE: only tensors over it; repeatable")
      ->allow_extra_args(false);
  add_rows_shown(command, options.tensors);
  command.add_flag("-q,--quiet", options.tensors.quiet, "the window and the verdict alone");
  add_output(command, options.tensors);
  add_page(command, options.tensors,
           "also writes a page, one file for a browser: the tensors at any loss scale");
}

}  // namespace

AnalyzeRequest request_of(const AnalyzeOptions& options) {
  AnalyzeRequest request = options.request;
  request.input = files_of(options.tensors);
  request.page = options.tensors.page;
  request.format = cast_format(options);
  request.advisor.tolerance = parse_share("--tolerance", options.tolerance);
  for (const std::string& pattern : options.groups) request.groups.patterns.emplace_back(pattern);
  request.averaging = averaging_of(options);
  return request;
}

std::vector<Threshold> thresholds_of(std::string_view option, const std::vector<std::string>& texts,
                                     const AnalyzeRequest& request) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : texts) {
    thresholds.push_back(parse_threshold(option, text));
    if (thresholds.back().metric == "relative_error" && request.against.empty())
      throw InvalidArgument(fmt::format("{} '{}' needs --against", option, text));
  }
  return thresholds;
}

void add_analyze_options(CLI::App& command, AnalyzeOptions& options) {
  add_inputs(command, options);
  add_judging(command, options);
  add_averaging(command, options);
  add_view(command, options);
  add_threads(command, options.tensors);
}

}  // namespace halfscope
