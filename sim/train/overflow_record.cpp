// Writes first overflows down.
#include "sim/train/overflow_record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace halfscope {
namespace {

Json to_json(const TraceRecord& record) {
  return {{"tensor", record.tensor},
          {"role", record.what},
          {"elements", record.elements},
          {"nonfinite", record.nonfinite},
          {"max_abs", shortest(record.max_abs)}};
}

}  // namespace

Json overflow_json(const StepObservations& seen) {
  if (!seen.first_overflow) return {};
  Json json{{"pass", std::string(name_of(seen.first_overflow->pass))},
            {"cause", std::string(name_of(seen.first_overflow->cause))}};
  json.update(to_json(seen.first_overflow->source));
  json["before"] = Json::array();
  for (const TraceRecord& record : seen.trace) json["before"].push_back(to_json(record));
  return json;
}

std::string overflow_in_words(std::int64_t step, const Json& overflow) {
  const auto text = [&](const char* key) { return overflow.at(key).get<std::string>(); };
  std::string role = text("role");
  std::replace(role.begin(), role.end(), '_', ' ');
  const std::string cause = text("cause");
  const char* how = cause == "cast"        ? "beyond the format"
                    : cause == "reduction" ? "partial sums overflowed"
                                           : "infinite or NaN";
  return fmt::format("step {}: {} ({}) was first, in the {} pass: {} of {} {}, largest {:.3g}", step,
                     text("tensor"), role, text("pass"), overflow.at("nonfinite").get<std::int64_t>(),
                     overflow.at("elements").get<std::int64_t>(), how, overflow.at("max_abs").get<double>());
}

}  // namespace halfscope
