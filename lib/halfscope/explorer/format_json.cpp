// Edges of a format, and JSON within HTML.
#include <halfscope/explorer/detail/format_json.hpp>

#include <nlohmann/json.hpp>

#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope::detail {

Json format_json(const FloatFormat& format) {
  const FlushEdge flush = flush_edge(format);
  const BinadeEdges edges = binade_edges(format);
  return {{"name", to_string(format)},
          {"label", format_label(format)},
          {"flush", flush.binade},
          {"flushes_powers_only", flush.only_powers},
          {"below_normal", format.min_exponent() - 1},
          {"largest", format.max_exponent()},
          {"edges", {{"overflow", edges.rounds_to_overflow}, {"normal", edges.rounds_to_normal}}}};
}

std::string script_json(const Json& json) {
  std::string text = to_line(json);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace halfscope::detail
