// BERT: its published size, examples that depend neither on their batch nor on padding, and that it learns.
#include <algorithm>
#include <set>

#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/repeated_words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::bert_test {
namespace {

using Numbers = std::vector<std::int64_t>;

Model small_bert(const Dataset& dataset) {
  return bert_kind.make(
      {.example_shape = dataset.example_shape(),
       .class_count = dataset.class_count(),
       .token_count = dataset.token_count(),
       .text_labels = dataset.text_labels(),
       .options = {{"embedding_size", 8}, {"hidden_size", 12}, {"layers", 2}, {"heads", 2}}});
}

/// The logits of a batch in an evaluation.
Array logits_of(const Model& model, const Batch& batch) {
  TrackerList none;
  Caster caster(fp16_mixed_policy(), 0, none);
  Tape tape(caster, Phase::evaluation);
  return tape.value(model.forward(tape, batch).predictions[0]).clone();
}

TEST_CASE("BERT-base has the published number of weights", "[bert]") {
  const auto weights = [](TextLabels labels, std::string_view head) {
    const Model model = bert_kind.make(
        {.example_shape = {512},
         .class_count = 2,
         .token_count = 30'522,
         .text_labels = labels,
         .options = {{"embedding_size", 768}, {"hidden_size", 3072}, {"layers", 12}, {"heads", 12}},
         .initial = InitialWeights::unset});
    std::size_t count = 0;
    for (const Parameter& parameter : model.store->parameters)
      if (!parameter.name.starts_with(head)) count += parameter.master.size();
    return count;
  };
  // Embeddings of 30,522 tokens, 512 positions and 2 segments with a norm, 12 layers, and the pooler.
  constexpr std::size_t width = 768, hidden = 3072, norm = 2 * width;
  constexpr std::size_t embeddings = (30'522 + 512 + 2) * width + norm,
                        layer =
                            4 * (width + 1) * width + (width + 1) * hidden + (hidden + 1) * width + 2 * norm,
                        pooler = (width + 1) * width;
  static_assert(embeddings + 12 * layer + pooler == 109'482'240);
  CHECK(weights(TextLabels::text_class, "classifier") == 109'482'240);
  CHECK(weights(TextLabels::text_class, "no head") == 109'482'240 + (width + 1) * 2);
  // The heads of the pre-training share the token embeddings.
  CHECK(weights(TextLabels::masked_words, "no head") ==
        109'482'240 + (width + 1) * width + norm + 30'522 + (width + 1) * 2);
}

TEST_CASE("no verse depends on those beside it, and none on its padding", "[bert]") {
  for (const char* name : {"verse_genre", "masked_verses"}) {
    INFO(name);
    const auto verses = open_repeated_words(name, 14);
    const Model model = small_bert(*verses);
    const Numbers several{0, 5, 17};
    const Array together = logits_of(model, verses->batch(Split::train, several));
    std::vector<float> apart;
    for (const std::int64_t index : several) {
      const Array alone = logits_of(model, verses->batch(Split::train, Numbers{index}));
      apart.insert(apart.end(), alone.values().begin(), alone.values().end());
    }
    CHECK(std::ranges::equal(together.values(), apart));
    Batch padded = verses->batch(Split::train, several);
    REQUIRE(padded.lengths[0] < 14);
    padded.tokens[13] = 6;
    CHECK(std::ranges::equal(logits_of(model, padded).values(), apart));
    padded.tokens[1] = padded.tokens[1] == 6 ? 7 : 6;
    CHECK_FALSE(std::ranges::equal(logits_of(model, padded).values(), apart));
  }
}

TEST_CASE("the second verse of a pair has a segment of its own", "[bert]") {
  const auto verses = open_repeated_words("masked_verses", 14);
  const Model model = small_bert(*verses);
  Batch batch = verses->batch(Split::train, Numbers{0});
  const Array before = logits_of(model, batch);
  std::ranges::fill(batch.segments, 0);
  CHECK_FALSE(std::ranges::equal(logits_of(model, batch).values(), before.values()));
}

TEST_CASE("BERT learns classes of verses and masked words", "[bert]") {
  for (const char* name : {"verse_genre", "masked_verses"}) {
    INFO(name);
    const auto verses = open_repeated_words(name, 13);
    TrainConfig config{.steps = 150, .batch = 16, .learning_rate = 3e-3, .policy = "fp16_mixed"};
    config.model = "bert";
    config.optimizer = "adamw";
    config.model_options["embedding_size"] = 32;
    config.model_options["hidden_size"] = 64;
    config.model_options["heads"] = 2;
    config.model_options["layers"] = 1;
    Trainer trainer(config, *verses);
    const Evaluation before = trainer.evaluate();
    for (std::int64_t i = 0; i < config.steps; ++i) static_cast<void>(trainer.step());
    const Evaluation after = trainer.evaluate();
    CHECK(before.metric < 70);
    CHECK(after.metric > 90);
    CHECK(after.loss < before.loss / 2);
  }
}

TEST_CASE("BERT says which data sets it learns from", "[bert]") {
  const ModelSpec next_words{.example_shape = {8}, .class_count = 20, .token_count = 20};
  check_says(message_of<InvalidArgument>([&] { (void)bert_kind.make(next_words); }),
             {"model bert", "masked_verses", "verse_genre"});
  const auto verses = open_repeated_words("verse_genre", 8);
  const Model model = small_bert(*verses);
  Batch batch = verses->batch(Split::train, Numbers{0, 1});
  batch.labels.pop_back();
  check_says(message_of<InvalidArgument>([&] { (void)logits_of(model, batch); }), {"model bert"});
}

}  // namespace
}  // namespace halfscope::bert_test
