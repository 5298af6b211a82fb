// Goes over the files of `halfscope analyze`.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include <halfscope/io/file.hpp>
#include <halfscope/io/file_summary.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/runner/status_line.hpp"

namespace halfscope {
namespace {

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

std::string why_nothing_is_selected(const SelectedFile& file) {
  const std::vector<StoredTensor>& tensors = file.file->tensors();
  if (!tensors.empty()) {
    return fmt::format("{}: --include and --exclude leave none of its {} tensors, the first is '{}'",
                       file.name, tensors.size(), tensors[0].name);
  }
  const std::vector<SkippedTensor>& skipped = file.file->skipped();
  if (skipped.empty()) return file.name + ": holds no tensor";
  return fmt::format("{}: holds no tensor of floating-point numbers; '{}' is skipped ({})", file.name,
                     skipped[0].name, skipped[0].reason);
}

}  // namespace

bool TensorSelection::takes(const std::string& tensor) const {
  return (include.empty() || matches_any(include, tensor)) && !matches_any(exclude, tensor);
}

SelectedFile select_tensors(const std::string& path, const TensorSelection& selection) {
  SelectedFile selected{printable(path), open_tensor_file(path, selection.raw_type), {}};
  const std::vector<StoredTensor>& tensors = selected.file->tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (selection.takes(tensors[i].name)) selected.tensors.push_back(i);
  }
  if (selected.tensors.empty()) throw InvalidArgument(why_nothing_is_selected(selected));
  return selected;
}

void analyze_file(const std::string& path, const std::string& prefix, const AnalyzeRequest& request,
                  Analysis& analysis) {
  const SelectedFile selected = select_tensors(path, request.selection);
  const std::vector<StoredTensor>& tensors = selected.file->tensors();
  std::int64_t elements = 0, done = 0;
  for (const std::size_t index : selected.tensors) elements += tensors[index].elements;
  std::vector<TensorReport> reports;
  StatusLine status;
  summarise_tensors(
      *selected.file, selected.tensors, request.format,
      [&](std::size_t index, const TensorSummary& summary) {
        reports.push_back(report_tensor(prefix + tensors[index].name, summary, request.advisor));
      },
      [&](std::int64_t more) {
        done += more;
        status.update(fmt::format("{}: {} of {} million elements", selected.name, done / 1'000'000,
                                  elements / 1'000'000));
      });
  status.clear();
  std::move(reports.begin(), reports.end(), std::back_inserter(analysis.tensors));
  for (const SkippedTensor& skipped : selected.file->skipped()) {
    if (request.selection.takes(skipped.name)) {
      analysis.skipped.push_back({prefix + skipped.name, skipped.reason});
    }
  }
}

}  // namespace halfscope
