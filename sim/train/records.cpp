// Step records to JSON.
#include "sim/train/records.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/policy/operand_scale.hpp>

#include "sim/train/overflow_record.hpp"

namespace halfscope {
namespace {

/// Member by member: an initializer list makes a value of each key and each pair first, and a step has one of
/// these for every tensor.
Json to_json(const TensorCounters& c) {
  Json::object_t members;
  members.reserve(10);
  const auto add = [&](const char* key, Json value) { members.emplace_back(key, std::move(value)); };
  add("tensor", c.tensor);
  add("role", std::string(name_of(c.role)));
  add("scale", c.scale);
  add("elements", c.elements);
  add("zeros", c.counters.zeros);
  add("flushed", c.counters.flushed);
  add("subnormal", c.counters.subnormal);
  add("overflow", c.counters.overflow);
  add("nonfinite", c.counters.nonfinite);
  add("max_abs", shortest(c.counters.max_abs));
  return members;
}

Json to_json(const UpdateCounters& c) {
  Json json{{"tensor", c.tensor},
            {"elements", c.elements},
            {"nonzero", c.nonzero},
            {"lost", c.lost},
            {"applied_over_intended", c.applied_over_intended}};
  if (c.projection) {
    json["along_intended"] = c.projection->along;
    json["intended_square"] = c.projection->square;
  }
  if (c.decays > 0) {
    json["decays"] = c.decays;
    json["lost_decays"] = c.lost_decays;
  }
  return json;
}

Json to_json(const ReductionRecord& record) {
  const ReductionCounters& c = record.counters;
  return {{"tensor", record.tensor},
          {"reductions", c.reductions},
          {"terms", c.terms},
          {"overflowed", c.overflowed},
          {"first_overflow", c.first_overflow},
          {"stagnated", c.stagnated},
          {"largest_partial_sum", shortest(c.largest_partial_sum)}};
}

Json to_json(const OperandCounters& operand) {
  const BlockCounts& c = operand.counts;
  Json json{{"layer", operand.layer},
            {"operand", to_string(operand.place)},
            {"elements", c.elements},
            {"zeros", c.zeros},
            {"nonfinite", c.nonfinite},
            {"lost", c.lost},
            {"flushed", c.flushed},
            {"flushed_by_scale", c.flushed_by_scale},
            {"clipped", c.clipped},
            {"overflow", c.overflow},
            {"blocks", c.blocks},
            {"clipped_blocks", c.clipped_blocks},
            {"zero_blocks", c.zero_blocks},
            {"zero_scales", c.zero_scales},
            {"least_scales", c.least_scales},
            {"largest_scales", c.largest_scales},
            {"nan_scales", c.nan_scales},
            {"relative_squared_error", c.relative_squared_error()}};
  const auto range = c.scale_range(operand.scales);
  json["scales_log2"] = range ? Json{range->low, range->high} : Json();
  const OperandMagnitude& m = operand.magnitude;
  json["amax"] = std::isfinite(m.amax) ? Json(shortest(m.amax)) : Json();
  json["largest"] = m.largest;
  if (m.delayed_scale != 0) {
    json["scale"] = shortest(m.delayed_scale);
    json["own_scale"] = shortest(current_scale(m.amax, m.delayed_aim));
  }
  return json;
}

std::string histogram_line(std::int64_t step, const HistogramRecord& record) {
  return fmt::format(R"({{"step":{},"tensor":{},"role":{},"scale":{},{}}})", step, Json(record.tensor).dump(),
                     Json(record.what).dump(), Json(record.scale).dump(),
                     histogram_members(record.histogram));
}

Json to_json(const GradientRecord& gradients) {
  Json json{{"finite", gradients.finite}};
  if (gradients.max_abs) json["max_abs"] = shortest(*gradients.max_abs);
  if (gradients.histogram)
    json["histogram"] = Json::parse(fmt::format("{{{}}}", histogram_members(*gradients.histogram)));
  return json;
}

Json to_json(const ObjectiveRecord& record) {
  Json json{{"name", record.name},
            {"loss", shortest(record.loss)},
            {"scale", record.scale},
            {"skipped", record.skipped}};
  if (record.gradients) json["gradients"] = to_json(*record.gradients);
  if (record.all_reduce) json["all_reduce"] = to_json(*record.all_reduce);
  return json;
}

template <typename Record>
Json list_of(const std::vector<Record>& records) {
  Json::array_t list;
  list.reserve(records.size());
  for (const Record& record : records) list.push_back(to_json(record));
  return list;
}

}  // namespace

Json append_record(RecordText& text, const StepRecord& record, const Evaluation* evaluation) {
  Json json{{"step", record.step},
            {"loss", shortest(record.loss)},
            {"metric", evaluation == nullptr ? Json() : Json(evaluation->metric)},
            {"scale", record.scale},
            {"skipped", record.skipped},
            {"learning_rate", record.learning_rate}};
  if (record.gradients) json["gradients"] = to_json(*record.gradients);
  if (record.all_reduce) json["all_reduce"] = to_json(*record.all_reduce);
  if (!record.further.empty()) json["further_losses"] = list_of(record.further);
  if (evaluation != nullptr) json["test_loss"] = evaluation->loss;
  if (evaluation != nullptr && evaluation->accuracy) json["accuracy"] = *evaluation->accuracy;
  if (!record.fp32_reference.empty()) json["fp32_reference"] = list_of(record.fp32_reference);
  if (!record.zero_causes.empty()) json["zero_causes"] = list_of(record.zero_causes);
  if (!record.what_if.empty()) json["what_if_updates"] = list_of(record.what_if);
  if (!record.probes.empty()) json["probes"] = list_of(record.probes);
  if (record.overflow) json["first_overflow"] = overflow_json(*record.overflow);
  if (record.observations) {
    json["tensors"] = list_of(record.observations->tensors);
    json["updates"] = list_of(record.observations->updates);
    json["reductions"] = list_of(record.observations->reductions);
    if (!record.observations->operands.empty()) json["operands"] = list_of(record.observations->operands);
    for (const HistogramRecord& histogram : record.observations->histograms) {
      text.histograms.append(histogram_line(record.step, histogram)) += '\n';
    }
  }
  text.metrics += to_line(json) + "\n";
  return json;
}

}  // namespace halfscope
