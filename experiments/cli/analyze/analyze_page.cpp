// The explorer of an analysis, as a page.
#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {

void write_page(const AnalyzeRequest& request, const Analysis& analysis) {
  ExplorerData data(analysis.format);
  std::vector<TensorFit> fits;
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    data.add(tensor.report.name, "", 0, *tensor.counts);
    fits.push_back(tensor.report.fit);
  }
  data.advise(fits, analysis.advice);
  write_file(
      request.page,
      explorer_page(page_title(request.input, analysis.read.files, format_label(analysis.format)), data));
}

}  // namespace halfscope
