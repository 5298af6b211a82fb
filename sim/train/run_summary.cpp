// Sums, last values and sentences over the records.
#include "sim/train/run_summary.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/core/names.hpp>
#include <halfscope/stats/site.hpp>

#include "sim/train/overflow_record.hpp"
#include "sim/train/rank_gradients.hpp"

namespace halfscope {
namespace {

/// Training loss of a summary: the mean over this many last steps, since single batches scatter.
constexpr std::size_t loss_window = 30;

}  // namespace

void RunSummary::LossHistory::add(std::int64_t step, const Json& record) {
  const Json& loss = record.at("loss");
  const double value = loss.is_null() ? std::nan("") : loss.get<double>();
  if (step == 1 && std::isfinite(value)) initial_ = value;
  losses_.push_back(value);
  if (losses_.size() > loss_window) losses_.pop_front();
  if (record.at("skipped").get<bool>()) {
    ++skipped_;
    last_skipped_ = step;
  }
  scale_ = record.at("scale").get<double>();
  first_at_scale_.emplace(scale_, step);
}

Json RunSummary::LossHistory::train_loss() const {
  double sum = 0;
  for (const double loss : losses_) sum += loss;
  return losses_.empty() ? Json() : Json(sum / static_cast<double>(losses_.size()));
}

void RunSummary::LossHistory::write_scales(Json& summary) const {
  summary["skipped"] = skipped_;
  summary["last_skipped_step"] = last_skipped_ == 0 ? Json() : Json(last_skipped_);
  summary["final_scale"] = scale_;
  const auto first = first_at_scale_.find(scale_);
  summary["first_at_final_scale"] = first == first_at_scale_.end() ? Json() : Json(first->second);
}

void RunSummary::add(const Json& record) {
  const auto step = record.at("step").get<std::int64_t>();
  first_.add(step, record);
  all_reduces_.add(record);
  if (const auto further = record.find("further_losses"); further != record.end()) {
    for (const Json& loss : *further) {
      further_[loss.at("name").get<std::string>()].add(step, loss);
      all_reduces_.add(loss);
    }
  }
  if (record.contains("first_overflow") && record["first_overflow"].is_object()) {
    overflows_.push_back(overflow_in_words(step, record["first_overflow"]));
  }
  if (const auto operands = record.find("operands"); operands != record.end())
    for (const Json& operand : *operands) operands_.add(operand);
  if (const auto causes = record.find("zero_causes"); causes != record.end())
    for (const Json& tensor : *causes) zero_causes_.add(tensor);
  if (const auto rows = record.find("what_if_updates"); rows != record.end())
    for (const Json& row : *rows) what_if_.add(row);
  if (!record.contains("updates")) return;
  for (const Json& tensor : record["tensors"]) {
    const Role role = parse_enum<Role>("role", tensor.at("role").get_ref<const std::string&>());
    if (gradient_roles.contains(role)) gradients_.add(tensor);
  }
  for (const Json& update : record["updates"]) updates_.add(update);
}

void RunSummary::Updates::add(const Json& update) {
  nonzero += update.at("nonzero").get<std::int64_t>();
  lost += update.at("lost").get<std::int64_t>();
  decays += update.value("decays", std::int64_t{0});
  lost_decays += update.value("lost_decays", std::int64_t{0});
  const auto square = update.find("intended_square");
  if (square == update.end() || !square->is_number() || !update.at("along_intended").is_number()) return;
  intended_square += square->get<double>();
  along_intended += update.at("along_intended").get<double>();
}

void RunSummary::Updates::write_to(Json& summary) const {
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(whole));
  };
  summary["lost_updates"] = share(lost, nonzero);
  if (decays > 0) summary["lost_decays"] = share(lost_decays, decays);
  if (intended_square > 0) summary["update_projection"] = along_intended / intended_square;
}

void RunSummary::write_to(Json& summary) const {
  summary["train_loss"] = first_.train_loss();
  updates_.write_to(summary);
  summary["gradients"] = {{"nonzero", gradients_.nonzero},
                          {"flushed", gradients_.flushed},
                          {"subnormal", gradients_.subnormal},
                          {"overflow", gradients_.overflow}};
  first_.write_scales(summary);
  summary["overflows"] = overflows_;
  if (operands_.operands > 0) summary["operands"] = operands_.summary();
  if (!zero_causes_.counts.empty()) summary["zero_causes"] = zero_causes_.counts;
  if (!what_if_.rows.empty()) summary["what_if_updates"] = what_if_.summary();
  if (all_reduces_.steps > 0) summary["all_reduce"] = all_reduces_.summary();
  for (const auto& [name, history] : further_) {
    Json& loss = summary["further_losses"][name];
    loss["train_loss"] = history.train_loss();
    history.write_scales(loss);
  }
}

void RunSummary::ZeroSums::add(const Json& tensor) {
  for (const auto& [key, value] : tensor.items())
    if (key != "tensor") counts[key] += value.get<std::int64_t>();
}

void RunSummary::WhatIfSums::add(const Json& row) {
  Sums& sums = rows[{row.at("format").get<std::string>(), row.at("rate_log2").get<int>()}];
  sums.nonzero += row.at("nonzero").get<std::int64_t>();
  sums.lost += row.at("lost").get<std::int64_t>();
  sums.along += row.at("along_intended").get<double>();
  sums.square += row.at("intended_square").get<double>();
}

Json RunSummary::WhatIfSums::summary() const {
  Json list = Json::array();
  for (const auto& [key, sums] : rows) {
    if (sums.nonzero == 0 || sums.square == 0) continue;
    list.push_back({{"format", key.first},
                    {"rate_log2", key.second},
                    {"lost", static_cast<double>(sums.lost) / static_cast<double>(sums.nonzero)},
                    {"applied", sums.along / sums.square}});
  }
  return list;
}

void RunSummary::AllReduces::add(const Json& record) {
  const auto own = record.find("all_reduce");
  if (own == record.end()) return;
  const AllReduceCounters here = all_reduce_counters(*own);
  counters.merge(here);
  ++steps;
  if (here.stagnated > 0 && here.means_overflowed == 0 && here.addends_overflowed == 0) ++stagnated_steps;
}

Json RunSummary::AllReduces::summary() const {
  Json json = to_json(counters);
  json["steps"] = steps;
  json["stagnated_steps"] = stagnated_steps;
  return json;
}

void RunSummary::Operands::add(const Json& operand) {
  const auto count = [&](const char* key) { return operand.at(key).get<std::int64_t>(); };
  ++operands;
  nonzero += count("elements") - count("zeros") - count("nonfinite");
  flushed += count("flushed");
  clipped += count("clipped");
  blocks += count("blocks");
  clipped_blocks += count("clipped_blocks");
  zero_scales += std::max<std::int64_t>(0, count("zero_scales") - count("zero_blocks"));
  if (const Json& range = operand.at("scales_log2"); range.is_array())
    spread = std::max(spread, range.at(1).get<std::int64_t>() - range.at(0).get<std::int64_t>());
}

Json RunSummary::Operands::summary() const {
  return {{"nonzero", nonzero},
          {"flushed", flushed},
          {"clipped", clipped},
          {"blocks", blocks},
          {"clipped_blocks", clipped_blocks},
          {"zero_scales", zero_scales},
          {"scale_spread", spread}};
}

void RunSummary::Gradients::add(const Json& tensor) {
  const auto count = [&](const char* key) { return tensor.at(key).get<std::int64_t>(); };
  nonzero += count("elements") - count("zeros") - count("nonfinite");
  flushed += count("flushed");
  subnormal += count("subnormal");
  overflow += count("overflow");
}

}  // namespace halfscope
