// The comparison of formats as JSON: counts, shares beside them, and errors both relative and in dB.
#include <nlohmann/json.hpp>

#include <cmath>

#include "experiments/cli/formats/formats_present.hpp"
#include "experiments/cli/tensors/files_read.hpp"

namespace halfscope {
namespace {

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

void add_counts(Json& json, const BlockCounts& counts) {
  const double error = relative_error(counts);
  json["relative_error"] = finite_or_null(error);
  json["error_db"] = finite_or_null(decibels(error));
  json["elements"] = counts.elements;
  json["zeros"] = counts.zeros;
  json["nonfinite"] = counts.nonfinite;
  json["lost"] = counts.lost;
  json["flushed"] = counts.flushed;
  json["flushed_by_scale"] = counts.flushed_by_scale;
  json["subnormal"] = counts.subnormal;
  json["clipped"] = counts.clipped;
  json["overflow"] = counts.overflow;
  json["blocks"] = counts.blocks;
  json["blocks_at_risk"] = counts.blocks_at_risk;
  json["clipped_blocks"] = counts.clipped_blocks;
  json["overflow_blocks"] = counts.overflow_blocks;
  json["zero_blocks"] = counts.zero_blocks;
  json["nonfinite_blocks"] = counts.nonfinite_blocks;
}

Json sum_json(const FormatSum& sum, const FormatComparison& comparison) {
  Json json{{"name", sum.name},
            {"bits_per_element", sum.bits_per_element()},
            {"fits", sum.fits},
            {"worst_tensor", sum.worst ? Json(comparison.tensors[*sum.worst].name) : Json()},
            {"worst_relative_error", finite_or_null(sum.worst_error)},
            {"worst_error_db", finite_or_null(decibels(sum.worst_error))},
            {"worst_row_error", finite_or_null(sum.worst_row_error)},
            {"most_flushed", sum.most_flushed},
            {"padded_tensors", sum.padded.size()}};
  add_counts(json, sum.counts);
  return json;
}

Json rows_json(const RowErrors& rows) {
  return {{"count", rows.rows},
          {"median_error", finite_or_null(rows.median)},
          {"worst_error", finite_or_null(rows.worst)},
          {"worst", rows.worst_row}};
}

Json columns_json(const ColumnErrors& columns) {
  return {{"median_error", finite_or_null(columns.median)},
          {"worst_tenth_error", finite_or_null(columns.worst_tenth)},
          {"largest", columns.largest},
          {"norm_ratio", finite_or_null(columns.norm_ratio)}};
}

Json shared_json(const SharedScale& shared) {
  return {{"row", shared.row},
          {"column", shared.column},
          {"largest", shared.largest},
          {"flushed_up_to", shared.flushed_up_to},
          {"flushed_by_rows", shared.flushed_by_rows}};
}

Json tensor_json_of(const TensorInFormats& tensor, const std::vector<TensorFormat>& formats) {
  Json list = Json::array();
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const FormatCounts& found = tensor.formats[i];
    Json json{{"name", to_string(formats[i])},
              {"padded", is_padded(formats[i], tensor.matrix)},
              {"scale_log2", found.scale_log2 ? Json(*found.scale_log2) : Json()},
              {"rows", rows_json(found.rows)}};
    if (found.shared) json["shared_scale"] = shared_json(*found.shared);
    if (found.columns) json["columns"] = columns_json(*found.columns);
    add_counts(json, found.counts);
    list.push_back(json);
  }
  return {{"name", tensor.label},         {"file", tensor.file},
          {"rows", tensor.matrix.rows},   {"columns", tensor.matrix.columns},
          {"one_axis", tensor.is_vector}, {"formats", list}};
}

}  // namespace

std::string formats_json(const FormatsFound& found, std::size_t top) {
  const FormatComparison comparison = compare_formats(found);
  Json json{{"cheapest", comparison.cheapest ? Json(comparison.formats[*comparison.cheapest].name) : Json()},
            {"verdict", cheapest_line(comparison)},
            {"max_error", found.max_error.share},
            {"axis", found.compared.axis}};
  for (const FormatSum& sum : comparison.formats) json["formats"].push_back(sum_json(sum, comparison));
  json["tensors"] = Json::array();
  for (const std::size_t i : worst_tensors(comparison, top))
    json["tensors"].push_back(tensor_json_of(found.tensors[i], found.compared.formats));
  json["left_out"] = comparison.left_out;
  json["analysed"] = found.tensors.size();
  add_files_json(json, found.read);
  return to_text(json);
}

}  // namespace halfscope
