// halfscope analyze: what a format does to tensors of the user's own, and which loss scale fits them.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include <halfscope/core/parallel.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/analyze/analyze_findings.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"

namespace halfscope {
namespace {

struct Options {
  AnalyzeRequest request;
  std::string format = "fp16", tolerance = "20%";
  std::string dtype;
  std::vector<std::string> fail_on;
  int threads = 0;
  bool json = false;
};

AnalyzeRequest request_of(const Options& options) {
  AnalyzeRequest request = options.request;
  request.format = parse_format(options.format);
  request.advisor.tolerance = parse_share("--tolerance", options.tolerance);
  if (!options.dtype.empty()) {
    request.selection.raw_type = parse_enum<DType>("dtype", options.dtype);
  }
  if (request.weights.empty() != request.updates.empty()) {
    throw InvalidArgument(fmt::format("{} needs {}: a file of weights and one of the updates to them",
                                      request.weights.empty() ? "--updates" : "--weights",
                                      request.weights.empty() ? "--weights" : "--updates"));
  }
  if (request.files.empty() && request.weights.empty()) {
    throw InvalidArgument(
        "give a FILE of tensors (.npy, .npz, .safetensors, or raw with --dtype), or --weights "
        "and --updates");
  }
  return request;
}

std::vector<Threshold> thresholds_of(const Options& options) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : options.fail_on) {
    thresholds.push_back(parse_threshold(text));
    if (thresholds.back().metric == "lost_updates" && options.request.weights.empty()) {
      throw InvalidArgument("--fail-on '" + text + "' needs --weights and --updates");
    }
  }
  return thresholds;
}

/// Runs `step`; where it says that its file is wrong, that becomes one line, and the others go on.
template <typename Step>
ExitStatus or_print_error(Step&& step) {
  try {
    step();
    return done;
  } catch (const InvalidArgument& error) {
    print_error(error.what());
    return wrong_request;
  }
}

/// One line for each threshold that tensors reach.
ExitStatus judge(const std::vector<Threshold>& thresholds, const Analysis& analysis) {
  ExitStatus status = done;
  for (const Threshold& threshold : thresholds) {
    const std::vector<OverThreshold> findings = find_over(threshold, analysis);
    if (findings.empty()) continue;
    std::string names;
    for (const OverThreshold& finding : findings) {
      names +=
          fmt::format("{}{} ({})", names.empty() ? "" : ", ", finding.tensor, share_words(finding.share));
    }
    print_error(fmt::format("{}: {}", threshold.text, names));
    status = found_something;
  }
  return status;
}

void run(const Options& options) {
  const AnalyzeRequest request = request_of(options);
  const std::vector<Threshold> thresholds = thresholds_of(options);
  set_thread_count(options.threads > 0 ? options.threads
                                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  Analysis analysis{.format = request.format, .advisor = request.advisor};
  ExitStatus status = done;
  for (const std::string& file : request.files) {
    const std::string prefix = request.files.size() > 1 ? file + ":" : "";
    status = std::max(status, or_print_error([&] { analyze_file(file, prefix, request, analysis); }));
  }
  if (!request.weights.empty()) {
    status = std::max(status, or_print_error([&] { analysis.updates = analyze_updates(request); }));
  }
  std::vector<TensorFit> fits;
  for (const TensorReport& tensor : analysis.tensors) fits.push_back(tensor.fit);
  analysis.advice = advise(fits, request.format, request.advisor);
  const bool empty = analysis.tensors.empty() && analysis.updates.empty();
  if (!empty) std::cout << (options.json ? analysis_json(analysis) : analysis_text(analysis));
  throw Exit{std::max(status, judge(thresholds, analysis))};
}

}  // namespace

void add_analyze_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  AnalyzeRequest& request = options->request;
  CLI::App* command = app.add_subcommand(
      "analyze", "gradients, activations or weights of your own: what a cast does to them, which scale fits");
  command->add_option("FILE", request.files, ".npy, .npz, .safetensors, or raw elements with --dtype");
  command->add_option("--format", options->format, "of the cast: fp16, bf16, fp8_e4m3, fp8_e5m2, any eXmY")
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerance,
                   "share of a tensor's norm that underflow may cost at a fitting scale")
      ->capture_default_str();
  command
      ->add_option("--headroom", request.advisor.headroom_log2,
                   "binades that the recommended scale leaves below overflow, where they fit")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  command->add_option("--weights", request.weights, "with --updates: counts updates that FP16 weights lose");
  command->add_option("--updates", request.updates, "what is added to the weights, under the same names");
  command->add_option("--dtype", options->dtype,
                      "of a raw file's elements: f16, bf16, f32, f64, f8_e4m3, f8_e5m2");
  command->add_option("--include", request.selection.include, "a glob: only these tensors; repeatable")
      ->allow_extra_args(false);
  command->add_option("--exclude", request.selection.exclude, "a glob: not these tensors; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--fail-on", options->fail_on,
                   "METRIC>SHARE: exit 1 where a tensor is over it, as in 'flushed>2%'; repeatable; one of " +
                       threshold_metrics())
      ->allow_extra_args(false);
  command->add_option("--threads", options->threads, "threads; results do not depend on them")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
