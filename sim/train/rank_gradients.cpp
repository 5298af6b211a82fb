// Flattens the gradients of a store, and gives their means back.
#include "sim/train/rank_gradients.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

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

}  // namespace

RankGradients::RankGradients(const RunSettings& settings, const ParameterStore& store)
    : all_reduce_(settings.all_reduce, settings.predivide,
                  {.ranks = settings.config.ranks, .elements = parameter_elements(store)}),
      buffer_(static_cast<std::size_t>(parameter_elements(store))) {}

void RankGradients::put(std::int64_t rank, const ParameterStore& store) {
  auto next = buffer_.begin();
  for (const Parameter& parameter : store.parameters) {
    const Array gradient = to_host_floats(parameter.gradient);
    next = std::ranges::copy(gradient.values(), next).out;
  }
  all_reduce_.put(rank, buffer_);
}

AllReduceCounters RankGradients::finish(ParameterStore& store) {
  const AllReduceCounters counters = all_reduce_.finish(buffer_);
  const Device device = active_device();
  auto next = buffer_.cbegin();
  for (Parameter& parameter : store.parameters) {
    Array mean(parameter.master.shape(), Device::cpu);
    std::copy_n(next, mean.size(), mean.data());
    next += std::ssize(mean);
    parameter.gradient = mean.to(device);
  }
  return counters;
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
