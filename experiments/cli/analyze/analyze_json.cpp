// The findings of `halfscope analyze` as JSON: counts as they are, and their shares beside them.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ostream>

#include <halfscope/core/escape.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/analyze/analyze_blocks.hpp"
#include "experiments/cli/analyze/analyze_present.hpp"
#include "experiments/cli/tensors/files_read.hpp"

namespace halfscope {
namespace {

Json window_json(const std::optional<ScaleWindow>& window) {
  return window ? Json{window->low, window->high} : Json();
}

template <typename Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json tensor_json(const AnalyzedTensor& tensor) {
  const TensorReport& report = tensor.report;
  const WhatIf& counts = report.counts;
  Json json{{"name", report.name},
            {"elements", counts.elements},
            {"zeros", report.zeros},
            {"flushed", counts.flushed},
            {"subnormal", counts.subnormal},
            {"overflow", counts.overflow},
            {"nonfinite", report.nonfinite},
            {"max_abs", shortest(report.max_abs)},
            {"lost_energy", report.lost_energy},
            {"cosine", json_or_null(report.cosine)},
            {"window_log2", tensor.blocks ? Json() : window_json(report.fit.window())},
            {"any_scale", report.fit.any_scale},
            {"flushed_share", counts.flushed_fraction()},
            {"subnormal_share", counts.subnormal_fraction()},
            {"overflow_share", counts.overflow_fraction()},
            {"file", tensor.file.empty() ? Json() : Json(tensor.file)},
            {"tensors", tensor.tensors},
            {"beyond_fp32", tensor.beyond_fp32}};
  if (tensor.blocks) json["blocks"] = blocks_json(*tensor.blocks);
  if (tensor.reference) {
    json["relative_error"] = json_or_null(tensor.reference->relative_error());
    json["reference_cosine"] = json_or_null(tensor.reference->cosine());
  }
  return json;
}

Json outlier_json(const Outlier& outlier) {
  return {{"name", outlier.tensor.name},
          {"remedy", std::string(name_of(outlier.remedy))},
          {"scale_log2", json_or_null(outlier.scale_log2)}};
}

template <typename Values, typename ToJson>
Json list_of(const Values& values, ToJson&& to_json) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(to_json(value));
  return list;
}

/// A row as it stands in the list of a text; its last line has no end.
std::string indented_twice(std::string_view row) {
  std::string text;
  for (const std::string_view line : split(row.substr(0, row.size() - 1), '\n'))
    text += fmt::format("{}    {}", text.empty() ? "" : "\n", line);
  return text;
}

/// Adds the advice on all tensors together to `json`.
void add_advice(Json& json, const Analysis& analysis, const View& view) {
  json["joint_window_log2"] = window_json(analysis.advice.joint);
  json["recommended_scale_log2"] = json_or_null(analysis.advice.recommended);
  if (analysis.is_quantized) json["quantized"] = true;
  if (const auto reason = analysis.signs.reason()) json["weights"] = *reason;
  json["first_hurt"] = analysis.advice.first_hurt;
  json["verdict"] = analysis.advice.verdict;
  json["tolerance"] = analysis.advisor.tolerance;
  json["headroom_log2"] = analysis.advisor.headroom_log2;
  json["outliers"] = list_of(analysis.advice.outliers, outlier_json);
  add_files_json(json, analysis.read);
  json["analysed"] = view.all;
  if (analysis.averaging) {
    json["ranks"] = analysis.averaging->ranks;
    json["predivide"] = analysis.averaging->predivide;
  }
}

}  // namespace

void write_analysis_json(std::ostream& out, const Analysis& analysis, const View& view) {
  Json json{{"format", to_string(analysis.format)}, {"tensors", Json::array()}};
  add_advice(json, analysis, view);
  const std::string text = to_text(json);
  if (view.tensors.empty()) {
    out << text;
    return;
  }
  constexpr std::string_view key = "\"tensors\": [";
  const std::size_t rows = text.find(key) + key.size();  // the second key, behind that of a plain format
  out << std::string_view(text).substr(0, rows);
  for (const AnalyzedTensor* tensor : view.tensors)
    out << (tensor == view.tensors.front() ? "\n" : ",\n") << indented_twice(to_text(tensor_json(*tensor)));
  out << "\n  " << std::string_view(text).substr(rows);
}

void write_analysis_json_lines(std::ostream& out, const Analysis& analysis, const View& view) {
  for (const AnalyzedTensor* tensor : view.tensors)
    out << to_line({{"tensor", tensor_json(*tensor)}}) << "\n";
  Json advice{{"format", to_string(analysis.format)}};
  add_advice(advice, analysis, view);
  out << to_line({{"all", advice}}) << "\n";
}

}  // namespace halfscope
