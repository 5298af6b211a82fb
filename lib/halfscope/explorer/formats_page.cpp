// Fills the page of the explorer of formats.
#include <fmt/format.h>

#include <halfscope/explorer/detail/assets.hpp>
#include <halfscope/explorer/detail/html.hpp>
#include <halfscope/explorer/formats_data.hpp>

namespace halfscope {
namespace {

/// A row for each tensor and format, which the script puts its tables in place of.
std::string still_formats_table(const FormatsData& data) {
  std::string rows;
  for (const FormatsOfTensor& tensor : data.tensors()) {
    for (std::size_t i = 0; i < data.formats().size(); ++i) {
      const BlockCounts& counts = tensor.counts[i].counts;
      rows += fmt::format(
          "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
          detail::html(tensor.name), detail::html(to_string(data.formats()[i])),
          decibel_text(relative_error(counts)), counts.flushed, counts.clipped, counts.blocks,
          counts.blocks_at_risk);
    }
  }
  return "<table><thead><tr><th>tensor</th><th>format</th><th>error dB</th><th>flushed</th><th>clipped</th>"
         "<th>blocks</th><th>at risk</th></tr></thead><tbody>\n" +
         rows + "</tbody></table>";
}

}  // namespace

std::string formats_answer(const FormatsData& data) {
  const FormatAdvice& advice = data.advice();
  if (advice.choice.empty()) return "";
  return fmt::format("<div class=\"advice\"><p><b>{}</b></p>\n<p>{}</p>\n</div>", detail::html(advice.choice),
                     detail::html(advice.reason));
}

std::string formats_page(std::string_view title, const FormatsData& data) {
  return detail::explorer_document(title, {.legend = assets::formats_legend,
                                           .answer = formats_answer(data),
                                           .table = still_formats_table(data),
                                           .data = formats_explorer_json(data)});
}

}  // namespace halfscope
