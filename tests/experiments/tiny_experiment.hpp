// A small experiment on images of noise, for the tests of what runs experiments.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/core/random.hpp>
#include <halfscope/io/file.hpp>

#include <filesystem>
#include <string>

#include "experiments/run/plan.hpp"
#include "tests/sim/data/idx_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {

/// Four idx files of 8x8 images in `folder`/data: noise, with labels in turn.
inline void put_images(const TemporaryFolder& folder) {
  for (const auto& [split, count] : {std::pair{"train", 24}, {"t10k", 8}}) {
    std::string pixels, labels;
    for (int i = 0; i < count; ++i) {
      const RandomStream noise{static_cast<std::uint64_t>(i), 0, 0};
      labels += static_cast<char>(i % 4);
      for (std::uint64_t p = 0; p < 64; ++p) pixels += static_cast<char>(noise.bits(p) >> 24);
    }
    const auto images = static_cast<std::uint32_t>(count);
    folder.put(fmt::format("data/{}-images-idx3-ubyte", split), idx_bytes({images, 8, 8}, pixels));
    folder.put(fmt::format("data/{}-labels-idx1-ubyte", split), idx_bytes({images}, labels));
  }
}

/// Two arms of six steps.
inline Experiment tiny() {
  return {.name = "tiny",
          .summary = "a small one",
          .paper = "Section 0",
          .settings = {{"steps", "6"}, {"batch", "4"}, {"checkpoint_every", "2"}, {"observe_every", "3"}},
          .full_settings = {{"steps", "3"}},
          .varied = {"policy"},
          .arms = {{"fp32", "", {{"policy", "fp32"}}},
                   {"fp16_mixed",
                    "",
                    {{"policy", "fp16_mixed"}, {"loss_scale", "1024"}},
                    {{"loss_scale", "512"}}}},
          .quick_arms = {"fp16_mixed"},
          .full_arms = {"fp16_mixed"},
          .verdict = {{.text = "{fp16_mixed | fp32}."}}};
}

/// Its runs fail in the first step, whose gradients overflow at a loss scale that cannot go down.
inline Arm failing_arm() {
  return {"failing",
          "",
          {{"policy", "fp16_mixed"},
           {"loss_scale", "deepspeed"},
           {"initial_scale", "1e30"},
           {"min_scale", "1e30"}}};
}

/// A folder with images and room for results.
struct Place {
  TemporaryFolder folder;
  std::filesystem::path out = folder / "out";

  Place() { put_images(folder); }

  [[nodiscard]] RunRequest request(std::vector<std::string> arms = {}, std::int64_t seeds = 1) const {
    return {.arms = std::move(arms),
            .seeds = seeds,
            .out = out,
            .settings = {{"data", (folder / "data").string()}}};
  }
  [[nodiscard]] std::filesystem::path run(const std::string& arm, int seed = 0) const {
    return out / "tiny" / arm / fmt::format("seed{}", seed);
  }
  [[nodiscard]] Json config(const std::string& arm) const { return read_json(run(arm) / "config.json"); }
  [[nodiscard]] std::string status(const std::string& arm, int seed = 0) const {
    return read_file(run(arm, seed) / "status");
  }
};

}  // namespace halfscope
