// Recipes of the speech experiments.
#include "experiments/ablations/speech.hpp"

namespace halfscope {

Settings slow_speech_settings() {
  return {{"model", "deep_speech_2"}, {"dataset", "spoken_digits"},
          {"hidden_size", "96"},      {"batch", "32"},
          {"steps", "1600"},          {"optimizer", "sgd"},
          {"momentum", "0.9"},        {"learning_rate", "5e-5"},
          {"schedule", "constant"},   {"observe_every", "100"}};
}

Settings normal_speech_settings() {
  return {{"steps", "300"},       {"optimizer", "adam"},  {"learning_rate", "2e-3"},
          {"schedule", "cosine"}, {"warmup_steps", "20"}, {"observe_every", "25"}};
}

ReportedMetric test_character_error_rate() {
  return {.name = "test character error rate",
          .unit = "%",
          .comparison = Comparison::ratio,
          .lower_is_better = true};
}

}  // namespace halfscope
