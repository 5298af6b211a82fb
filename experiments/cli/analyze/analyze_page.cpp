// The explorer of an analysis, as a page.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/explorer/formats_data.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/analyze/formats_present.hpp"

namespace halfscope {
namespace {

/// "model.safetensors in 3 formats".
std::string page_title(const AnalyzeRequest& request, const Analysis& analysis, const std::string& formats) {
  const std::string files = request.files.size() == 1
                                ? std::filesystem::path(request.files.front()).filename().string()
                                : fmt::format("{} files", analysis.files);
  return fmt::format("{} in {}", files, formats);
}

}  // namespace

void require_page(const std::string& path) {
  constexpr std::string_view beginning = "<!DOCTYPE html>";
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return;
  std::string found(beginning.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  if (file.gcount() == 0 || found == beginning) return;
  throw InvalidArgument(
      fmt::format("--html: {} is there already and is no page; give another path, such as {}",
                  printable(path), printable(path + ".html")));
}

void write_page(const AnalyzeRequest& request, const Analysis& analysis) {
  ExplorerData data(analysis.format);
  std::vector<TensorFit> fits;
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    data.add(tensor.report.name, "", 0, *tensor.counts);
    fits.push_back(tensor.report.fit);
  }
  data.advise(fits, analysis.advice);
  write_file(request.page, explorer_page(page_title(request, analysis, format_label(analysis.format)), data));
}

void write_formats_page(const AnalyzeRequest& request, const Analysis& analysis) {
  FormatsData data(request.counted.formats);
  for (const AnalyzedTensor& tensor : analysis.tensors)
    data.add({tensor.report.name, tensor.matrix, tensor.counted});
  const FormatComparison comparison = compare_formats(analysis);
  data.advise(format_advice(comparison));
  data.start_at(request.compared.formats[comparison.best()]);
  const std::size_t count = comparison.formats.size();
  const std::string formats = count == 1 ? comparison.formats.front().name : fmt::format("{} formats", count);
  write_file(request.page, formats_page(page_title(request, analysis, formats), data));
}

}  // namespace halfscope
