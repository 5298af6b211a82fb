// Result folders made by hand, for the tests of what reads them.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "tests/support/temporary_folder.hpp"

namespace halfscope {

/// A finished run's summary.json with a test accuracy of 50 %; `changes` replace and add keys.
inline void put_run(const TemporaryFolder& experiment, const std::string& arm, int seed,
                    const Json& changes = Json::object()) {
  Json summary{{"format_version", 1},      {"seed", seed},   {"diverged", false},
               {"diverged_step", nullptr}, {"metric", 50.0}, {"train_loss", 1.5}};
  summary.update(changes);
  experiment.put(fmt::format("{}/seed{}/summary.json", arm, seed), summary.dump());
}

/// `changes` of a run that diverged in `step`.
inline Json diverged_at(int step) {
  return {{"diverged", true}, {"diverged_step", step}, {"metric", nullptr}};
}

}  // namespace halfscope
