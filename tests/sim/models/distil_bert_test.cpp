// DistilBERT: its published size, the start that a teacher gives it, and what it learns from it.
#include <fmt/format.h>

#include <algorithm>

#include <halfscope/io/file.hpp>

#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/tape/stored_weights.hpp"
#include "sim/train/run.hpp"
#include "sim/train/start_weights.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/repeated_words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::distil_bert_test {
namespace {

void ignore(const StepRecord& /*record*/) {}

TrainConfig small(const char* model, std::int64_t layers) {
  TrainConfig config{.steps = 60, .batch = 16, .learning_rate = 3e-3, .policy = "fp32"};
  config.model = model;
  config.dataset = "masked_verses";
  config.optimizer = "adamw";
  config.model_options["embedding_size"] = 16;
  config.model_options["hidden_size"] = 24;
  config.model_options["heads"] = 2;
  config.model_options["layers"] = static_cast<double>(layers);
  config.observe_every = 0;
  return config;
}

TrainConfig taught(const std::filesystem::path& teacher, std::int64_t layers = 2) {
  TrainConfig config = small("distil_bert", layers);
  config.teacher = teacher.string();
  return config;
}

/// The weights of a BERT of four layers after a few steps.
class Taught {
 public:
  explicit Taught(std::int64_t steps = 2) {
    Trainer teacher(small("bert", 4), *verses);
    for (std::int64_t i = 0; i < steps; ++i) static_cast<void>(teacher.step());
    weights = teacher.checkpoint();
    write_safetensors(path, weights);
  }

  std::unique_ptr<Dataset> verses = open_repeated_words("masked_verses", 13);
  TemporaryFolder folder;
  std::filesystem::path path = folder / "teacher.safetensors";
  SafetensorsFile weights;
};

const Array& tensor(const SafetensorsFile& file, std::string_view name) {
  const Array* const found = find_weight(file, name);
  REQUIRE(found != nullptr);
  return *found;
}

bool same(const Array& a, const Array& b) {
  return std::ranges::equal(a.values(), b.values());
}

TEST_CASE("DistilBERT has the published number of weights", "[distil_bert]") {
  const auto weights = [](TextLabels labels) {
    const Model model = distil_bert_kind.make(
        {.example_shape = {512},
         .class_count = 2,
         .token_count = 30'522,
         .text_labels = labels,
         .options = {{"embedding_size", 768}, {"hidden_size", 3072}, {"layers", 6}, {"heads", 12}},
         .initial = InitialWeights::unset});
    std::size_t count = 0;
    for (const Parameter& parameter : model.store->parameters) count += parameter.master.size();
    return count;
  };
  constexpr std::size_t width = 768, hidden = 3072, norm = 2 * width;
  constexpr std::size_t layer =
      4 * (width + 1) * width + (width + 1) * hidden + (hidden + 1) * width + 2 * norm;
  static_assert((30'522 + 512) * width + norm + 6 * layer == 66'362'880);
  CHECK(weights(TextLabels::text_class) == 66'362'880 + (width + 1) * width + (width + 1) * 2);
  CHECK(weights(TextLabels::masked_words) == 66'362'880 + (width + 1) * width + norm + 30'522);
}

TEST_CASE("a student begins with evenly spaced layers of its teacher", "[distil_bert]") {
  const Taught bert;
  for (const std::int64_t layers : {1, 2, 3, 4}) {
    Trainer student(with_teacher(parsed(taught(bert.path, layers))), *bert.verses);
    const SafetensorsFile begun = student.checkpoint();
    for (const char* name : {"embeddings.words", "embeddings.positions", "embeddings.norm.gamma",
                             "masked_words.dense.weight", "masked_words.bias"}) {
      INFO(name);
      CHECK(same(tensor(begun, name), tensor(bert.weights, name)));
    }
    for (std::int64_t i = 1; i <= layers; ++i) {
      const std::int64_t source = 1 + (i - 1) * 4 / layers;
      for (const char* part : {"self.query.weight", "self.norm.beta", "feed_forward.inner.weight"}) {
        INFO("layer " << i << " of " << layers << ", " << part);
        CHECK(same(tensor(begun, fmt::format("encoder{}.{}", i, part)),
                   tensor(bert.weights, fmt::format("encoder{}.{}", source, part))));
      }
    }
    CHECK(find_weight(begun, "embeddings.segments") == nullptr);
  }
}

TEST_CASE("a student that equals its teacher has the loss of the words alone", "[distil_bert]") {
  // Without segments a verse of one sentence is the same to both.
  const Taught bert;
  SafetensorsFile weights = read_safetensors(bert.path);
  for (NamedArray& array : weights.tensors)
    if (array.name == "model.embeddings.segments") std::ranges::fill(array.array.values(), 0.0f);
  RunSettings settings = parsed(taught(bert.path, 4));
  settings.teacher = std::make_shared<const SafetensorsFile>(std::move(weights));
  Trainer student(settings, *bert.verses), alone(small("distil_bert", 4), *bert.verses);
  alone.start_from(*settings.teacher);
  CHECK(student.evaluate().loss == alone.evaluate().loss);
  const double words = static_cast<double>(alone.step().loss);
  CHECK(static_cast<double>(student.step().loss) == Approx(2 * words).epsilon(1e-5));
}

TEST_CASE("a student comes closer to its teacher than to the labels alone", "[distil_bert]") {
  const Taught bert(150);
  Trainer student(with_teacher(parsed(taught(bert.path, 1))), *bert.verses);
  const Evaluation before = student.evaluate();
  const float first = student.step().loss;
  float last = first;
  for (int i = 0; i < 59; ++i) last = student.step().loss;
  CHECK(last < first / 2);
  CHECK(student.evaluate().loss < before.loss);
}

TEST_CASE("a teacher is a run's folder, a file or an arm beside the run, and is read again by what resumes",
          "[distil_bert]") {
  const TemporaryFolder root;
  const auto verses = open_repeated_words("masked_verses", 13);
  TrainConfig bert = small("bert", 2);
  bert.steps = 2;
  const RunFolder first(root.path(), {"experiment", "bert", 3});
  run_training(parsed(bert), *verses, first, ignore);
  std::vector<std::string> metrics;
  for (const std::string& teacher :
       {first.path().string(), first.checkpoint_path().string(), std::string("arm:bert")}) {
    TrainConfig config = taught(teacher, 1);
    config.steps = 6;
    config.checkpoint_every = 2;
    const RunFolder folder(root.path(), {"experiment", fmt::format("arm{}", metrics.size()), 3});
    run_training(parsed(config), *verses, folder, ignore);
    metrics.push_back(read_file(folder.path() / "metrics.jsonl"));
    CHECK(read_file(folder.path() / "config.json").find("\"teacher\"") != std::string::npos);
    std::filesystem::remove_all(folder.path());
    const auto stop = [&, steps = 0]() mutable { return ++steps == 3; };
    CHECK(run_training(parsed(config), *verses, folder, ignore, stop) == RunEnd::stopped);
    run_training(parsed(config), *verses, folder, ignore);
    CHECK(read_file(folder.path() / "metrics.jsonl") == metrics.back());
  }
  CHECK(metrics[0] == metrics[1]);
  CHECK(metrics[0] == metrics[2]);
}

TEST_CASE("what cannot teach is refused in one line", "[distil_bert]") {
  const Taught bert;
  const auto refusal = [&](const TrainConfig& config, const Dataset& dataset) {
    return message_of<InvalidArgument>([&] { check_training(parsed(config), dataset); });
  };
  check_says(refusal(taught(bert.path, 5), *bert.verses), {"distil_bert", "4 layers", "layers = 5"});
  TrainConfig wide = taught(bert.path);
  wide.model_options["embedding_size"] = 32;
  check_says(refusal(wide, *bert.verses), {"teacher", "embeddings.words", "16)", "32)"});
  check_says(refusal(taught(bert.folder / "nowhere"), *bert.verses), {"teacher = ", "nowhere", "arm:NAME"});
  TrainConfig other = taught(bert.path);
  other.model = "bert";
  check_says(refusal(other, *bert.verses), {"teacher = ", "model bert", "distil_bert"});
  const auto genres = open_repeated_words("verse_genre", 13);
  TrainConfig classes = taught(bert.path);
  classes.dataset = "verse_genre";
  check_says(refusal(classes, *genres), {"teacher = ", "verse_genre", "masked_verses"});
}

TEST_CASE("a distilled student learns classes of verses", "[distil_bert]") {
  const auto genres = open_repeated_words("verse_genre", 13);
  TrainConfig config = small("distil_bert", 1);
  config.dataset = "verse_genre";
  config.steps = 150;
  config.policy = "fp16_mixed";
  Trainer trainer(config, *genres);
  for (std::int64_t i = 0; i < config.steps; ++i) static_cast<void>(trainer.step());
  CHECK(trainer.evaluate().metric > 90);
}

}  // namespace
}  // namespace halfscope::distil_bert_test
