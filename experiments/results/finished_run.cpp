// Checks the records of a run, and reads its settings.
#include "experiments/results/finished_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/core/error.hpp>

#include "sim/train/recorded_keys.hpp"
#include "sim/train/run_folder.hpp"

namespace halfscope {
namespace {

enum class Presence : std::uint8_t { required, optional };

struct Member {
  std::string_view key;
  Presence presence;
  std::string_view expected;
  bool (*fits)(const Json& value);
};

bool is_text_list(const Json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_string(); });
}

bool is_object(const Json& value) {
  return value.is_object();
}

bool is_number_or_null(const Json& value) {
  return value.is_number() || value.is_null();
}

constexpr std::array run_members{
    Member{"seed", Presence::required, "a whole number", is_integer},
    Member{"diverged", Presence::required, "true or false",
           [](const Json& value) { return value.is_boolean(); }},
    Member{"metric", Presence::required, "a number or null", is_number_or_null},
    Member{"train_loss", Presence::required, "a number or null", is_number_or_null},
    Member{"overflows", Presence::optional, "a list of texts", is_text_list},
    Member{"memory", Presence::optional, "an object", is_object},
    Member{"gradients", Presence::optional, "an object", is_object},
    Member{"all_reduce", Presence::optional, "an object", is_object}};

constexpr std::array gradient_members{Member{"nonzero", Presence::required, "a whole number", is_integer},
                                      Member{"flushed", Presence::required, "a whole number", is_integer},
                                      Member{"subnormal", Presence::required, "a whole number", is_integer},
                                      Member{"overflow", Presence::required, "a whole number", is_integer}};

constexpr std::array memory_members{
    Member{"peak_step_bytes", Presence::required, "a whole number", is_integer}};

constexpr std::array all_reduce_members{
    Member{"elements", Presence::required, "a whole number", is_integer},
    Member{"adds", Presence::required, "a whole number", is_integer},
    Member{"stagnated", Presence::required, "a whole number", is_integer},
    Member{"addends_flushed", Presence::required, "a whole number", is_integer},
    Member{"addends_overflowed", Presence::required, "a whole number", is_integer},
    Member{"means_flushed", Presence::required, "a whole number", is_integer},
    Member{"means_overflowed", Presence::required, "a whole number", is_integer},
    Member{"steps", Presence::required, "a whole number", is_integer},
    Member{"stagnated_steps", Presence::required, "a whole number", is_integer}};

constexpr std::array diverged_members{
    Member{"diverged_step", Presence::required, "a whole number", is_integer}};

template <std::size_t size>
void check_members(const Json& json, const std::array<Member, size>& members, std::string_view where) {
  for (const Member& member : members) {
    const auto found = json.find(member.key);
    if (found == json.end() && member.presence == Presence::optional) continue;
    if (found == json.end())
      throw InvalidArgument(fmt::format("{}: it lacks the key '{}'", where, member.key));
    if (!member.fits(*found))
      throw InvalidArgument(
          fmt::format("{}: {} is {}; expected {}", where, member.key, to_line(*found), member.expected));
  }
}

}  // namespace

std::string FinishedRun::text(std::string_view key, std::string_view other) const {
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string(other);
}

double FinishedRun::number(std::string_view key, double other) const {
  const auto found = config.find(key);
  return found != config.end() && found->is_number() ? found->get<double>() : other;
}

void check_run_summary(const Json& summary, std::string_view where) {
  check_format_version(summary, where);
  check_members(summary, run_members, where);
  if (summary["diverged"].get<bool>()) check_members(summary, diverged_members, where);
  if (summary.contains("memory")) check_members(summary["memory"], memory_members, where);
  if (summary.contains("gradients")) check_members(summary["gradients"], gradient_members, where);
  if (summary.contains("all_reduce")) check_members(summary["all_reduce"], all_reduce_members, where);
}

void check_step_counters(const Json& record) {
  (void)record.at("step").get<std::int64_t>();
  for (const Json& counters : record.at("tensors")) {
    for (const char* key : {"tensor", "role"}) (void)counters.at(key).get<std::string>();
    for (const char* key : {"scale", "elements", "flushed"}) (void)counters.at(key).get<double>();
  }
}

Json current_config(const Json& config, std::string_view where) {
  check_format_version(config, where);
  return settings_of(with_defaults(config));
}

}  // namespace halfscope
