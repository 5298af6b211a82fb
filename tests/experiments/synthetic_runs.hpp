// Result folders made by hand, for the tests of what reads them.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

inline void put_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush()) throw std::runtime_error("cannot write " + path.string());
}

/// A finished run's summary.json with a test accuracy of 50 %; `changes` replace and add keys.
inline void put_run(const std::filesystem::path& experiment, const std::string& arm, int seed,
                    const Json& changes = Json::object()) {
  Json summary{{"format_version", 1},      {"seed", seed},   {"diverged", false},
               {"diverged_step", nullptr}, {"metric", 50.0}, {"train_loss", 1.5}};
  summary.update(changes);
  put_text(experiment / arm / fmt::format("seed{}", seed) / "summary.json", summary.dump());
}

/// `changes` of a run that diverged in `step`.
inline Json diverged_at(int step) {
  return {{"diverged", true}, {"diverged_step", step}, {"metric", nullptr}};
}

}  // namespace halfscope
