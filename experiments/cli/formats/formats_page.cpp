// The explorer of formats under each scale rule, as a page.
#include <fmt/format.h>

#include <halfscope/explorer/formats_data.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/cli/formats/format_comparison.hpp"
#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {

void write_formats_page(const FormatsRequest& request, const FormatsFound& found) {
  FormatsData data(request.counted.formats);
  for (const TensorInFormats& tensor : found.tensors) data.add({tensor.label, tensor.matrix, tensor.counted});
  const FormatComparison comparison = compare_formats(found);
  data.advise(format_advice(comparison));
  data.start_at(request.compared.formats[comparison.best()]);
  const std::size_t count = comparison.formats.size();
  const std::string formats = count == 1 ? comparison.formats.front().name : fmt::format("{} formats", count);
  write_file(request.page, formats_page(page_title(request.input, found.read.files, formats), data));
}

}  // namespace halfscope
