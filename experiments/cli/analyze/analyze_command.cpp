// halfscope analyze: what a format does to tensors of the user's own, and which loss scale fits them.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "experiments/cli/analyze/analyze_blocks.hpp"
#include "experiments/cli/analyze/analyze_options.hpp"
#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/exit_status.hpp"

namespace halfscope {
namespace {

/// A table of the terminal that nobody asked to be cut is cut to its worst rows.
ViewOptions view_options(const AnalyzeOptions& options, const AnalyzeRequest& request,
                         const Analysis& analysis) {
  ViewOptions view{options.sort, options.tensors.top, thresholds_of("--only", options.only, request)};
  const bool is_text = !options.tensors.json && options.tensors.table == "text";
  if (!is_text || options.tensors.top || analysis.tensors.size() <= rows_by_default) return view;
  view.top = rows_by_default;
  if (view.sort.empty()) view.sort = worst_first;
  return view;
}

void print_analysis(const AnalyzeOptions& options, const AnalyzeRequest& request, const Analysis& analysis) {
  if (options.tensors.quiet) {
    std::cout << verdict_text(analysis, output_width());
    return;
  }
  const View view = view_of(analysis, view_options(options, request, analysis));
  if (options.tensors.json) return write_analysis_json(std::cout, analysis, view);
  const auto format = parse_enum<TableFormat>("table format", options.tensors.table);
  if (format == TableFormat::json) return write_analysis_json_lines(std::cout, analysis, view);
  std::cout << (format == TableFormat::text ? analysis_text(analysis, view, output_width())
                                            : analysis_table(analysis, view, format));
}

/// One line for each threshold that is reached, or that had nothing to judge.
ExitStatus judge_all(const std::vector<Threshold>& thresholds, const Analysis& analysis) {
  ExitStatus status = done;
  for (const Threshold& threshold : thresholds) {
    const ThresholdResult judgement = judge(threshold, analysis);
    if (judgement.judged == 0 && analysis.read.status == done) {
      print_error(fmt::format("--fail-on '{}': there is nothing to judge: no tensor has a finite value",
                              threshold.text));
      status = std::max(status, wrong_request);
    }
    if (judgement.over.empty()) continue;
    print_error(fmt::format("{}: {}", threshold.text, first_shares(judgement.over)));
    status = std::max(status, found_something);
  }
  return status;
}

void advise_on(Analysis& analysis) {
  std::vector<TensorFit> fits;
  fits.reserve(analysis.tensors.size());
  for (AnalyzedTensor& tensor : analysis.tensors) {
    TensorFit& fit = tensor.report.fit;
    fits.push_back(analysis.averaging ? averaged(std::move(fit), *analysis.averaging) : std::move(fit));
  }
  if (analysis.has_windows()) {
    analysis.advice = advise(fits, analysis.format, analysis.advisor);
    if (analysis.signs.are_in_doubt()) analysis.advice.verdict += say_weights_in_doubt();
  }
  for (std::size_t i = 0; i < fits.size(); ++i) analysis.tensors[i].report.fit = std::move(fits[i]);
  if (analysis.is_quantized)
    analysis.advice.verdict = blocks_verdict(analysis);
  else if (const auto reason = analysis.signs.reason())
    analysis.advice.verdict = say_weights(*reason);
}

void run(const AnalyzeOptions& options) {
  const AnalyzeRequest request = request_of(options);
  const std::vector<Threshold> thresholds = thresholds_of("--fail-on", options.fail_on, request);
  set_threads(options.tensors);
  allow_many_files();
  Analysis analysis{.format = request.format, .advisor = request.advisor, .averaging = request.averaging};
  static_cast<void>(view_of(analysis, view_options(options, request, analysis)));  // before hours of reading
  analyze_files(request, analysis);
  const bool is_json = options.tensors.json || options.tensors.table == "json";
  label_tensors(analysis, is_json ? Labels::with_file : Labels::shortest);
  advise_on(analysis);
  if (!analysis.tensors.empty()) {
    if (!request.page.empty()) write_page(request, analysis);
    print_analysis(options, request, analysis);
  }
  throw Exit{std::max(analysis.read.status, judge_all(thresholds, analysis))};
}

}  // namespace

void add_analyze_command(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand(
      "analyze", "gradients, activations or weights of your own: what a cast does to them, which scale fits");
  add_analyze_options(*command, *options);
  command->get_option("FILE")->required();
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
