// Flattens the gradients of a store, and gives their means back.
#include "sim/train/rank_gradients.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <halfscope/kernel/cast/convert.hpp>

namespace halfscope {
namespace {

struct CounterName {
  const char* text;
  std::int64_t AllReduceCounters::*member;
};
constexpr std::array counter_names{CounterName{"elements", &AllReduceCounters::elements},
                                   CounterName{"adds", &AllReduceCounters::adds},
                                   CounterName{"stagnated", &AllReduceCounters::stagnated},
                                   CounterName{"addends_flushed", &AllReduceCounters::addends_flushed},
                                   CounterName{"addends_overflowed", &AllReduceCounters::addends_overflowed},
                                   CounterName{"means_flushed", &AllReduceCounters::means_flushed},
                                   CounterName{"means_overflowed", &AllReduceCounters::means_overflowed}};

AllReduceCounters in_all_processes(AllReduceCounters counters) {
  std::vector<std::int64_t> values;
  values.reserve(counter_names.size());
  for (const CounterName& name : counter_names) values.push_back(counters.*name.member);
  sum_over_processes(values);
  for (std::size_t i = 0; i < values.size(); ++i) counters.*counter_names[i].member = values[i];
  return counters;
}

}  // namespace

RankGradients::RankGradients(const RunSettings& settings, const ParameterStore& store)
    : model_(settings.all_reduce),
      steps_(division_steps(settings.predivide, settings.config.parts.ranks, model_.wire_format())),
      plan_(make_plan(model_, {.ranks = settings.config.parts.ranks, .elements = parameter_elements(store)})),
      ranks_(settings.config.parts.ranks),
      buffer_(static_cast<std::size_t>(parameter_elements(store))),
      row_(buffer_.size() * bytes_per_element(model_.wire)) {}

AllReduceCounters RankGradients::addends_of(const Array& gradient, std::span<std::byte> addends) const {
  if (gradient.device() != Device::cpu) return addends_of(to_host_floats(gradient), addends);
  return write_addends(FloatsOf(gradient).values(), model_.wire, steps_.before, addends);
}

void RankGradients::put(std::int64_t own, const ParameterStore& store) {
  std::span<std::byte> rest = row_;
  for (const Parameter& parameter : store.parameters) {
    const std::size_t bytes = parameter.gradient.size() * bytes_per_element(model_.wire);
    counters_.merge(addends_of(parameter.gradient, rest.first(bytes)));
    rest = rest.subspan(bytes);
  }
  const ProcessShare share = share_of(std::ssize(buffer_), process_index());
  if (!addends_) addends_.emplace(model_.wire, ranks_, share.count, share.first);
  const std::vector<std::byte> received = exchange_shares(row_, bytes_per_element(model_.wire));
  const std::size_t bytes = received.size() / static_cast<std::size_t>(process_count());
  for (int process = 0; process < process_count(); ++process) {
    const auto from = std::span(received).subspan(static_cast<std::size_t>(process) * bytes, bytes);
    addends_->put(share_of(ranks_, process).first + own, from);
  }
}

AllReduceCounters RankGradients::finish(ParameterStore& store) {
  const ProcessShare share = share_of(std::ssize(buffer_), process_index());
  const std::span<float> own = std::span(buffer_).subspan(static_cast<std::size_t>(share.first),
                                                          static_cast<std::size_t>(share.count));
  counters_.merge(mean_of_ranks(*addends_, plan_, model_, steps_.after, own));
  gather_shares(buffer_);
  const Device device = active_device();
  auto next = buffer_.cbegin();
  for (Parameter& parameter : store.parameters) {
    Array mean(parameter.master.shape(), Device::cpu);
    std::copy_n(next, mean.size(), mean.data());
    next += std::ssize(mean);
    parameter.gradient = mean.to(device);
  }
  return in_all_processes(std::exchange(counters_, {}));
}

ProcessShare own_ranks(const RunSettings& settings) {
  return share_of(settings.config.parts.ranks, process_index());
}

void check_processes(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const int processes = process_count();
  if (processes == 1) return;
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw InvalidArgument(fmt::format("{} processes of mpirun and {}; {}", processes, what, remedy));
  };
  if (config.parts.ranks % processes != 0)
    refuse(fmt::format("ranks = {}", config.parts.ranks),
           fmt::format("give a multiple of {} as ranks", processes));
  if (config.fp32_reference_every > 0) refuse("fp32_reference_every", "compare with FP32 in one process");
  if (settings.probes) refuse("probe_scales", "probe in one process");
  if (!config.teacher.empty()) refuse("a teacher", "learn from one in one process");
}

std::int64_t parameter_elements(const ParameterStore& store) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : store.parameters) elements += std::ssize(parameter.master);
  return elements;
}

Json to_json(const AllReduceCounters& counters) {
  Json json;
  for (const CounterName& name : counter_names) json[name.text] = counters.*name.member;
  return json;
}

AllReduceCounters all_reduce_counters(const Json& json) {
  AllReduceCounters counters;
  for (const CounterName& name : counter_names)
    counters.*name.member = json.at(name.text).get<std::int64_t>();
  return counters;
}

}  // namespace halfscope
