// Settings of experiments, arms and runs: lists of keys and values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/train/config.hpp"

namespace halfscope {

/// Keys and values as `--set` takes them; of two values for a key the later one counts.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// "KEY=VALUE" texts, in order. Throws InvalidArgument, naming `option`, for any other.
[[nodiscard]] Settings parse_assignments(const std::vector<std::string>& assignments,
                                         std::string_view option = "--set");

/// `base` and then `changes`, which win where both have a key. Another model, data set or optimizer in
/// `changes` drops the options of `base` that it does not take. Throws InvalidArgument for an unknown one.
[[nodiscard]] Settings with(Settings base, const Settings& changes);

/// Sets the fields of `config` to `changes`; options are dropped as `with` drops them. Throws as `set_field`
/// does.
void change(TrainConfig& config, const Settings& changes);

}  // namespace halfscope
