// halfscope analyze: what a format does to tensors of the user's own, and which loss scale fits them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/core/parallel.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/analyze/analyze_blocks.hpp"
#include "experiments/cli/analyze/analyze_findings.hpp"
#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/cli/format_option.hpp"

namespace halfscope {
namespace {

struct AnalyzeOptions {
  AnalyzeRequest request;
  std::string format = "fp16", tolerance = "20%", table = "text", sort;
  std::optional<std::string> dtype, predivide;
  std::optional<std::int64_t> ranks;
  std::optional<std::size_t> top;
  std::vector<std::string> fail_on, only, groups;
  int threads = 0;
  bool json = false, json_lines = false, all = false, quiet = false;
};

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

AnalyzeRequest request_of(const AnalyzeOptions& options) {
  AnalyzeRequest request = options.request;
  request.format = parse_counted_format(options.format);
  request.advisor.tolerance = parse_share("--tolerance", options.tolerance);
  if (options.dtype) request.selection.raw_type = parse_enum<DType>("dtype", *options.dtype);
  for (const std::string& pattern : options.groups) request.groups.patterns.emplace_back(pattern);
  request.averaging = averaging_of(options);
  check_files(request);
  return request;
}

/// What the thresholds of `option` judge must have been given.
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

/// A table of the terminal that nobody asked to be cut is cut to its worst rows.
ViewOptions view_options(const AnalyzeOptions& options, const AnalyzeRequest& request,
                         const Analysis& analysis) {
  ViewOptions view{options.sort, options.top, thresholds_of("--only", options.only, request)};
  const bool is_text = !options.json && !options.json_lines && options.table == "text";
  if (!is_text || options.all || options.top || analysis.tensors.size() <= rows_by_default) return view;
  view.top = rows_by_default;
  if (view.sort.empty()) view.sort = worst_first;
  return view;
}

std::string output_of(const AnalyzeOptions& options, const AnalyzeRequest& request,
                      const Analysis& analysis) {
  if (options.quiet) return verdict_text(analysis, output_width());
  const View view = view_of(analysis, view_options(options, request, analysis));
  if (options.json) return analysis_json(analysis, view);
  if (options.json_lines) return analysis_json_lines(analysis, view);
  const auto format = parse_enum<TableFormat>("table format", options.table);
  return format == TableFormat::text ? analysis_text(analysis, view, output_width())
                                     : analysis_tables(analysis, view, format);
}

void print_findings(const Threshold& threshold, const std::vector<OverThreshold>& findings) {
  constexpr std::size_t shown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(shown, findings.size()); ++i) {
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", findings[i].tensor, share_words(findings[i].share));
  }
  if (findings.size() > shown) names += fmt::format(" and {} more", findings.size() - shown);
  print_error(fmt::format("{}: {}", threshold.text, names));
}

/// One line for each threshold that is reached, or that had nothing to judge.
ExitStatus judge_all(const std::vector<Threshold>& thresholds, const Analysis& analysis) {
  ExitStatus status = done;
  for (const Threshold& threshold : thresholds) {
    const Judgement judgement = judge(threshold, analysis);
    if (judgement.judged == 0 && analysis.status == done) {
      print_error(fmt::format("--fail-on '{}': there is nothing to judge: no {} has a finite value",
                              threshold.text, is_of_updates(threshold) ? "update" : "tensor"));
      status = std::max(status, wrong_request);
    }
    if (judgement.over.empty()) continue;
    print_findings(threshold, judgement.over);
    status = std::max(status, found_something);
  }
  return status;
}

/// Shards of weights and of updates are open at the same time.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

void count_updates(const AnalyzeRequest& request, Analysis& analysis) {
  try {
    analysis.updates = analyze_updates(request);
  } catch (const InvalidArgument& error) {
    print_error(error.what());
    analysis.status = wrong_request;
  }
}

void advise_on(Analysis& analysis) {
  std::vector<TensorFit> fits;
  for (AnalyzedTensor& tensor : analysis.tensors) {
    TensorFit& fit = tensor.report.fit;
    if (analysis.averaging) fit = averaged(std::move(fit), *analysis.averaging);
    fits.push_back(fit);
  }
  if (analysis.is_quantized) {
    analysis.advice.verdict = blocks_verdict(analysis);
  } else {
    analysis.advice = advise(fits, analysis.format, analysis.advisor);
  }
}

void run(const AnalyzeOptions& options) {
  const AnalyzeRequest request = request_of(options);
  const std::vector<Threshold> thresholds = thresholds_of("--fail-on", options.fail_on, request);
  set_thread_count(options.threads > 0 ? options.threads
                                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  allow_many_files();
  Analysis analysis{.format = request.format, .advisor = request.advisor, .averaging = request.averaging};
  static_cast<void>(view_of(analysis, view_options(options, request, analysis)));  // before hours of reading
  if (!request.files.empty()) analyze_files(request, analysis);
  if (!request.weights.empty()) count_updates(request, analysis);
  label_tensors(analysis, options.json || options.json_lines ? Labels::with_file : Labels::shortest);
  advise_on(analysis);
  if (!request.page.empty() && !analysis.tensors.empty()) write_page(request, analysis);
  const bool empty = analysis.tensors.empty() && analysis.updates.empty();
  if (!empty) std::cout << output_of(options, request, analysis);
  throw Exit{std::max(analysis.status, judge_all(thresholds, analysis))};
}

void add_inputs(CLI::App& command, AnalyzeOptions& options) {
  AnalyzeRequest& request = options.request;
  command.add_option(
      "FILE", request.files,
      ".npy, .npz, .safetensors, .gguf, PyTorch's .pt, .pth, .bin and .ckpt, or raw elements "
      "with --dtype; folders, quoted globs and model.safetensors.index.json stand for the files "
      "they name");
  command.add_option("--dtype", options.dtype,
                     "of a raw file's elements: f16, bf16, f32, f64, f8_e4m3, f8_e5m2");
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
                  "what is added to the weights, under the same names; a FILE, repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--against", request.against,
                  "a FILE of FP32 reference tensors of the same names: relative error and cosine; repeatable")
      ->allow_extra_args(false);
}

void add_judging(CLI::App& command, AnalyzeOptions& options) {
  command
      .add_option("--format", options.format,
                  "of the cast: fp16, bf16, fp8_e4m3, fp8_e4m3/saturate, any eXmY")
      ->capture_default_str();
  command
      .add_option("--tolerance", options.tolerance,
                  "share of a tensor's norm that underflow may cost at a fitting scale")
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
      .add_option("--html", options.request.page,
                  "also writes a page that shows the tensors at any loss scale, one file for a browser")
      ->type_name("PAGE");
  command.add_flag("--json", options.json, "as one JSON document on stdout");
  command.add_flag("--json-lines", options.json_lines, "as JSON lines on stdout: a tensor each, then all");
}

}  // namespace

void add_analyze_command(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand(
      "analyze", "gradients, activations or weights of your own: what a cast does to them, which scale fits");
  add_inputs(*command, *options);
  add_judging(*command, *options);
  add_averaging(*command, *options);
  add_view(*command, *options);
  command->add_option("--threads", options->threads, "threads; results do not depend on them")
      ->check(CLI::Range(1, 1024));
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
