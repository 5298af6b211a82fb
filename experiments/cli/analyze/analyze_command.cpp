// halfscope analyze: what a format does to tensors of the user's own, and which loss scale fits them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include <halfscope/core/parallel.hpp>

#include "experiments/cli/analyze/analyze_blocks.hpp"
#include "experiments/cli/analyze/analyze_options.hpp"
#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/cli/analyze/formats_present.hpp"
#include "experiments/cli/exit_status.hpp"

namespace halfscope {
namespace {

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

void print_analysis(const AnalyzeOptions& options, const AnalyzeRequest& request, const Analysis& analysis) {
  if (options.quiet) {
    std::cout << verdict_text(analysis, output_width());
    return;
  }
  const View view = view_of(analysis, view_options(options, request, analysis));
  if (options.json) return write_analysis_json(std::cout, analysis, view);
  if (options.json_lines) return write_analysis_json_lines(std::cout, analysis, view);
  const auto format = parse_enum<TableFormat>("table format", options.table);
  std::cout << (format == TableFormat::text ? analysis_text(analysis, view, output_width())
                                            : analysis_tables(analysis, view, format));
}

/// All tensors, but for a table of the terminal that nobody asked to be complete: a tensor has a row for each
/// format.
std::size_t tensors_shown(const AnalyzeOptions& options, const Analysis& analysis) {
  const bool is_text = !options.json && options.table == "text";
  const std::size_t all = analysis.tensors.size(), formats = analysis.compared.formats.size();
  if (options.top || !is_text || options.all) return options.top.value_or(all);
  return std::max<std::size_t>(1, rows_by_default / formats);
}

std::string comparison_of(const AnalyzeOptions& options, const Analysis& analysis) {
  const std::size_t top = tensors_shown(options, analysis);
  if (options.json) return formats_json(analysis, top);
  if (options.quiet) return cheapest_line(compare_formats(analysis)) + "\n";
  const auto format = parse_enum<TableFormat>("table format", options.table);
  return format == TableFormat::text ? formats_text(analysis, top, output_width())
                                     : formats_table(analysis, top, format);
}

void print_findings(const Threshold& threshold, const std::vector<OverThreshold>& findings) {
  constexpr std::size_t shown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(shown, findings.size()); ++i) {
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", findings[i].tensor, share_text(findings[i].share));
  }
  if (findings.size() > shown) names += fmt::format(" and {} more", findings.size() - shown);
  print_error(fmt::format("{}: {}", threshold.text, names));
}

/// One line for each threshold that is reached, or that had nothing to judge.
ExitStatus judge_all(const std::vector<Threshold>& thresholds, const Analysis& analysis) {
  ExitStatus status = done;
  for (const Threshold& threshold : thresholds) {
    const ThresholdResult judgement = judge(threshold, analysis);
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

/// --formats: nothing is advised, and the limit that was given is what is judged.
ExitStatus compare(const AnalyzeOptions& options, const AnalyzeRequest& request, Analysis& analysis) {
  analyze_files(request, analysis);
  label_tensors(analysis, options.json ? Labels::with_file : Labels::shortest);
  if (analysis.tensors.empty()) return analysis.status;
  if (!request.page.empty()) write_formats_page(request, analysis);
  std::cout << comparison_of(options, analysis);
  const bool is_over = options.max_error && !compare_formats(analysis).cheapest;
  return std::max(analysis.status, is_over ? found_something : done);
}

void run(const AnalyzeOptions& options) {
  const AnalyzeRequest request = request_of(options);
  const std::vector<Threshold> thresholds = thresholds_of("--fail-on", options.fail_on, request);
  set_thread_count(options.threads > 0 ? options.threads
                                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  allow_many_files();
  Analysis analysis{.format = request.format,
                    .compared = request.compared,
                    .max_error = request.max_error,
                    .advisor = request.advisor,
                    .averaging = request.averaging};
  if (!request.compared.formats.empty()) throw Exit{compare(options, request, analysis)};
  static_cast<void>(view_of(analysis, view_options(options, request, analysis)));  // before hours of reading
  if (!request.files.empty()) analyze_files(request, analysis);
  if (!request.weights.empty()) count_updates(request, analysis);
  label_tensors(analysis, options.json || options.json_lines ? Labels::with_file : Labels::shortest);
  advise_on(analysis);
  if (!request.page.empty() && !analysis.tensors.empty()) write_page(request, analysis);
  const bool empty = analysis.tensors.empty() && analysis.updates.empty();
  if (!empty) print_analysis(options, request, analysis);
  throw Exit{std::max(analysis.status, judge_all(thresholds, analysis))};
}

}  // namespace

void add_analyze_command(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand(
      "analyze", "gradients, activations or weights of your own: what a cast does to them, which scale fits");
  add_analyze_options(*command, *options);
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
