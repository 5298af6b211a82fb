// The explorer of an analysis, as a page.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include <halfscope/explorer/explorer_page.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/cli/analyze/analyze_present.hpp"

namespace halfscope {

void write_page(const AnalyzeRequest& request, const Analysis& analysis) {
  ExplorerData data(analysis.format);
  std::vector<TensorFit> fits;
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    data.add(tensor.report.name, "", 0, tensor.counts);
    fits.push_back(tensor.report.fit);
  }
  data.advise(fits, analysis.advice);
  const std::string files = request.files.size() == 1
                                ? std::filesystem::path(request.files.front()).filename().string()
                                : fmt::format("{} files", analysis.files);
  write_file(request.page,
             explorer_page(fmt::format("{} in {}", files, format_label(analysis.format)), data));
}

}  // namespace halfscope
