// Options become a request, or a line that says which of them do not go together.
#include "experiments/cli/analyze/analyze_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/explorer/formats_data.hpp>

#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/analyze/format_comparison.hpp"
#include "experiments/cli/format_option.hpp"

namespace halfscope {
namespace {

void check_files(const AnalyzeRequest& request) {
  if (request.weights.empty() != request.updates.empty()) {
    throw InvalidArgument(fmt::format("{} needs {}: files of weights and of the updates to them",
                                      request.weights.empty() ? "--updates" : "--weights",
                                      request.weights.empty() ? "--weights" : "--updates"));
  }
  if (request.files.empty() && request.weights.empty()) {
    throw InvalidArgument(
        "give a FILE of tensors (.npy, .npz, .safetensors, .gguf, .pt, a folder of them, or raw with "
        "--dtype), or "
        "--weights "
        "and --updates");
  }
  if (request.files.empty() && !request.page.empty())
    throw InvalidArgument("--html draws tensors; give the FILE that has them");
  if (request.files.empty() && !request.against.empty())
    throw InvalidArgument("--against compares tensors with a reference; give the FILE that has them");
}

/// Empty without ranks.
std::optional<Averaging> averaging_of(const AnalyzeOptions& options) {
  if (!options.ranks) {
    if (options.predivide)
      throw InvalidArgument("--predivide divides gradients of ranks; give --ranks N too");
    return std::nullopt;
  }
  if (!options.request.page.empty())
    throw InvalidArgument("--html draws tensors of one rank; leave out --ranks, or --html");
  return averaging_of(parse_gradient_division(options.predivide.value_or("ddp")), *options.ranks);
}

/// Names between commas, each format once; commas in parentheses belong to a name.
void append_formats(std::string_view list, std::vector<TensorFormat>& formats) {
  for (const std::string_view name : split_outside_parentheses(list, ',')) {
    append_new(parse_tensor_format_option(name), formats);
  }
}

/// An option that a comparison of formats has no use for, and whether it was given.
struct IdleOption {
  std::string_view name;
  bool (*is_given)(const AnalyzeOptions&);
};
constexpr std::array idle_in_comparison{
    IdleOption{"--weights", [](const AnalyzeOptions& o) { return !o.request.weights.empty(); }},
    IdleOption{"--updates", [](const AnalyzeOptions& o) { return !o.request.updates.empty(); }},
    IdleOption{"--against", [](const AnalyzeOptions& o) { return !o.request.against.empty(); }},
    IdleOption{"--fail-on", [](const AnalyzeOptions& o) { return !o.fail_on.empty(); }},
    IdleOption{"--ranks", [](const AnalyzeOptions& o) { return o.ranks.has_value(); }},
    IdleOption{"--predivide", [](const AnalyzeOptions& o) { return o.predivide.has_value(); }},
    IdleOption{"--group", [](const AnalyzeOptions& o) { return !o.groups.empty(); }},
    IdleOption{"--merge-shards", [](const AnalyzeOptions& o) { return o.request.groups.same_name; }},
    IdleOption{"--sort", [](const AnalyzeOptions& o) { return !o.sort.empty(); }},
    IdleOption{"--only", [](const AnalyzeOptions& o) { return !o.only.empty(); }},
    IdleOption{"--json-lines", [](const AnalyzeOptions& o) { return o.json_lines; }},
};

/// Formats that are compared, or the one format of a cast.
void compare_or_analyze(const AnalyzeOptions& options, AnalyzeRequest& request) {
  for (const std::string& list : options.formats) append_formats(list, request.compared.formats);
  if (request.compared.formats.empty() && is_block_format_name(options.format))
    append_formats(options.format, request.compared.formats);
  if (request.compared.formats.empty()) {
    if (options.max_error || options.axis)
      throw InvalidArgument(
          fmt::format("{} judges formats; give --formats too, such as --formats mxfp8_e4m3,nvfp4",
                      options.max_error ? "--max-error" : "--axis"));
    request.format = parse_counted_format(options.format);
    return;
  }
  for (const IdleOption& option : idle_in_comparison) {
    if (option.is_given(options))
      throw InvalidArgument(
          fmt::format("{} has no meaning in a comparison of formats; leave it out", option.name));
  }
  request.compared.axis = options.axis.value_or(-1);
  if (options.max_error) request.max_error = parse_error_limit(*options.max_error);
  request.counted = request.compared;
  if (request.page.empty()) return;
  request.counted.formats = with_all_rules(request.compared.formats);
  request.counted.exponents = ScaledExponents::counted;
}

void add_inputs(CLI::App& command, AnalyzeOptions& options) {
  AnalyzeRequest& request = options.request;
  command.add_option(
      "FILE", request.files,
      ".npy, .npz, .safetensors, .gguf, PyTorch's .pt, .pth, .bin and .ckpt, or raw elements "
      "with --dtype; folders, quoted globs and model.safetensors.index.json stand for the files "
      "they name");
  command.add_option("--dtype", options.dtype,
                     "type of a raw file's elements: f16, bf16, f32, f64, f8_e4m3, f8_e5m2");
  command.add_flag(
      "--payload", [&request](std::int64_t) { request.selection.view = QuantizedView::payload; },
      "codes and scales of quantized tensors as tensors of their own, not multiplied");
  command.add_option("--include", request.selection.include, "a glob: only these tensors; repeatable")
      ->allow_extra_args(false);
  command.add_option("--exclude", request.selection.exclude, "a glob: not these tensors; repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--weights", request.weights,
                  "with --updates: counts updates that FP16 weights lose; a FILE, repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--updates", request.updates,
                  "updates to add to the weights, under the same names; a FILE, repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--against", request.against,
                  "a FILE of FP32 reference tensors of the same names: relative error and cosine; repeatable")
      ->allow_extra_args(false);
}

void add_judging(CLI::App& command, AnalyzeOptions& options) {
  command
      .add_option(
          "--format", options.format,
          "format of the cast: fp16, bf16, fp8_e4m3, fp8_e4m3/saturate, any eXmY; or a block format, as "
          "--formats has it")
      ->capture_default_str();
  command
      .add_option(
          "--formats", options.formats,
          "several, with commas: error, counts and bits of each, the cheapest within --max-error; block "
          "formats too")
      ->allow_extra_args(false);
  command.add_option(
      "--max-error", options.max_error,
      "with --formats: of every tensor, norm of the error over its own, as in 5%, or signal over "
      "noise, as in 26dB; 5% by default");
  command.add_option("--axis", options.axis,
                     "with --formats: the axis that blocks run along, the last by default");
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
          "for each layer; repeatable")
      ->allow_extra_args(false);
  command.add_flag("--merge-shards", options.request.groups.same_name,
                   "tensors of one name in several files are parts of one");
  command.add_option("--sort", options.sort, fmt::format("one of {}", fmt::join(sort_key_names(), ", ")));
  command.add_option("--top", options.top, "only the first so many")->check(CLI::Range(1, 1'000'000'000));
  command.add_option("--only", options.only, "METRIC>SHARE: only tensors over it; repeatable")
      ->allow_extra_args(false);
  command.add_flag("--all", options.all,
                   fmt::format("all rows; otherwise the {} worst of more tensors", rows_by_default));
  command.add_flag("-q,--quiet", options.quiet, "the window and the verdict alone");
  command.add_option("--table", options.table, "text, csv, markdown, latex or json")->capture_default_str();
  command
      .add_option(
          "--html", options.request.page,
          "also writes a page, one file for a browser: the tensors at any loss scale, or with --formats in "
          "each format under each scale rule")
      ->type_name("PAGE");
  command.add_flag("--json", options.json, "as one JSON document on stdout");
  command.add_flag("--json-lines", options.json_lines, "as JSON lines on stdout: a tensor each, then all");
}

}  // namespace

AnalyzeRequest request_of(const AnalyzeOptions& options) {
  AnalyzeRequest request = options.request;
  compare_or_analyze(options, request);
  request.advisor.tolerance = parse_share("--tolerance", options.tolerance);
  if (options.dtype) request.selection.raw_type = parse_enum<DType>("dtype", *options.dtype);
  for (const std::string& pattern : options.groups) request.groups.patterns.emplace_back(pattern);
  request.averaging = averaging_of(options);
  check_files(request);
  require_page(request.page);
  return request;
}

std::vector<Threshold> thresholds_of(std::string_view option, const std::vector<std::string>& texts,
                                     const AnalyzeRequest& request) {
  std::vector<Threshold> thresholds;
  const auto needs = [&](const std::string& text, std::string_view what) {
    throw InvalidArgument(fmt::format("{} '{}' needs {}", option, text, what));
  };
  for (const std::string& text : texts) {
    thresholds.push_back(parse_threshold(option, text));
    const Threshold& threshold = thresholds.back();
    if (is_of_updates(threshold) && request.weights.empty()) needs(text, "--weights and --updates");
    if (!is_of_updates(threshold) && request.files.empty()) needs(text, "a FILE of tensors");
    if (threshold.metric == "relative_error" && request.against.empty()) needs(text, "--against");
  }
  return thresholds;
}

void add_analyze_options(CLI::App& command, AnalyzeOptions& options) {
  add_inputs(command, options);
  add_judging(command, options);
  add_averaging(command, options);
  add_view(command, options);
  command.add_option("--threads", options.threads, "threads; results do not depend on them")
      ->check(CLI::Range(1, 1024));
}

}  // namespace halfscope
