// Builds DistilBERT, which learns masked words from a BERT, or classes of texts from labels alone.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "sim/models/models.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/bert_encoder.hpp"
#include "sim/models/parts/masked_words.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/tape/stored_weights.hpp"

namespace halfscope {
namespace distil_bert {
namespace {

// Sanh et al., 2019, and the program that goes with it.
constexpr float temperature = 2, divergence_weight = 5, masked_words_weight = 2, cosine_weight = 1;

/// An encoder with the head of masked words: all of the student, and as much of its teacher.
struct MaskedLanguageModel {
  BertEncoder encoder;
  MaskedWordsHead head;
};

struct Classifier {
  BertEncoder encoder;
  LinearParameters dense, classes;
};

/// The rows of states (batch, time, width) that are of no padding.
std::vector<std::int32_t> shown_rows(const Batch& batch) {
  const std::size_t examples = batch.lengths.size(), time = batch.tokens.size() / examples;
  std::vector<std::int32_t> rows;
  for (std::size_t b = 0; b < examples; ++b)
    for (std::size_t t = 0; t < static_cast<std::size_t>(batch.lengths[b]); ++t)
      rows.push_back(static_cast<std::int32_t>(b * time + t));
  return rows;
}

/// Logits (labels, vocabulary) of the masked words, and states (tokens, width) of all tokens but padding.
struct Outputs {
  TensorRef logits, states;
};

Outputs run(Tape& tape, const MaskedLanguageModel& model, const Batch& batch) {
  const TensorRef states = bert_states(tape, model.encoder, batch);
  const std::int64_t width = tape.value(states).shape().back();
  return {masked_word_logits(tape, model.head, states, batch),
          take_rows(tape, "states.shown", states, {shown_rows(batch), width})};
}

/// A frozen BERT, always in FP32 and without dropout: the same targets for any policy of the student.
class Teacher {
 public:
  Teacher(ParameterStore& store, const ModelSpec& spec) : model_(add(store, spec)) {}

  struct Targets {
    Array logits, states;
  };
  [[nodiscard]] Targets targets(const Batch& batch) const {
    TrackerList nobody;
    Caster caster(fp32_policy(), 0, nobody);
    caster.begin_step({});
    Tape tape(caster, Phase::evaluation);
    const Outputs outputs = run(tape, model_, batch);
    return {tape.value(outputs.logits).clone(), tape.value(outputs.states).clone()};
  }

 private:
  static MaskedLanguageModel add(ParameterStore& store, const ModelSpec& spec) {
    BertEncoder encoder = add_bert_encoder(store, spec, Segments::embedded);
    MaskedWordsHead head = add_masked_words_head(store, spec, encoder.words);
    return {std::move(encoder), head};
  }

  MaskedLanguageModel model_;
};

/// Layers of the encoder of which there are weights.
std::int64_t layers_of(const SafetensorsFile& weights) {
  std::int64_t layers = 0;
  while (find_weight(weights, fmt::format("encoder{}.self.norm.gamma", layers + 1)) != nullptr) ++layers;
  return layers;
}

/// The teacher's name of a student's weight: layer i of L begins as layer 1 + (i - 1) T / L of T.
std::string teacher_name(const std::string& name, std::int64_t layers, std::int64_t teacher_layers) {
  constexpr std::string_view prefix = "encoder";
  if (!name.starts_with(prefix)) return name;
  std::int64_t layer = 0;
  const char* const first = name.data() + prefix.size();
  const char* const end = std::from_chars(first, name.data() + name.size(), layer).ptr;
  return fmt::format("{}{}{}", prefix, 1 + (layer - 1) * teacher_layers / layers,
                     std::string_view(end, name.data() + name.size()));
}

/// Fills the stores of a teacher and of its student.
void take_weights(const ModelSpec& spec, std::int64_t teacher_layers, ParameterStore& teacher,
                  ParameterStore& student) {
  for (Parameter& parameter : teacher.parameters)
    parameter.master = weight_of(*spec.teacher, parameter.name, parameter.master.shape());
  for (Parameter& parameter : student.parameters) {
    const std::string name = teacher_name(parameter.name, spec.whole(layers_option), teacher_layers);
    parameter.master = weight_of(*spec.teacher, name, parameter.master.shape());
  }
}

/// Adds a teacher to `model` and begins the student with its weights.
std::shared_ptr<const Teacher> add_teacher(Model& model, const ModelSpec& spec) {
  ModelSpec larger = spec;
  larger.initial = InitialWeights::unset;
  const std::int64_t layers = layers_of(*spec.teacher);
  larger.options.insert_or_assign(std::string(layers_option.name), static_cast<double>(layers));
  if (layers < spec.whole(layers_option)) {
    throw InvalidArgument(
        fmt::format("model distil_bert: its teacher has {} layers of a bert, fewer than layers = {}; give a "
                    "bert on masked_verses with more",
                    layers, spec.whole(layers_option)));
  }
  model.teacher = std::make_unique<ParameterStore>();
  auto teacher = std::make_shared<const Teacher>(*model.teacher, larger);
  try {
    take_weights(spec, layers, *model.teacher, *model.store);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("model distil_bert: its teacher does not fit: {}", error.what()));
  }
  return teacher;
}

BatchOutcome learn_words(Tape& tape, const MaskedLanguageModel& student, const Teacher* teacher,
                         const Batch& batch) {
  const Outputs own = run(tape, student, batch);
  const bool distils = teacher != nullptr && tape.phase() == Phase::training;
  const char* const name = distils ? "masked_words.loss" : "loss";
  const TensorRef words = softmax_cross_entropy(tape, name, own.logits, batch.labels);
  if (!distils) return {words, {own.logits}};
  Teacher::Targets targets = teacher->targets(batch);
  const std::array losses{
      WeightedLoss{distillation_loss(tape, "distillation.loss", own.logits, targets.logits, temperature),
                   divergence_weight},
      WeightedLoss{words, masked_words_weight},
      WeightedLoss{cosine_embedding_loss(tape, "states.loss", own.states, std::move(targets.states)),
                   cosine_weight}};
  return {total_loss(tape, "loss", losses), {own.logits}};
}

BatchOutcome learn_classes(Tape& tape, const Classifier& model, const Batch& batch) {
  const TensorRef states = bert_states(tape, model.encoder, batch);
  TensorRef x = first_states(tape, "pre_classifier.first", states);
  x = relu(tape, "pre_classifier.relu", linear(tape, "pre_classifier", x, model.dense));
  x = dropout(tape, "classifier.dropout", x, model.encoder.dropout);
  const TensorRef logits = linear(tape, "classifier", x, model.classes);
  return {softmax_cross_entropy(tape, "loss", logits, batch.labels), {logits}};
}

Model make_student(const ModelSpec& spec) {
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  BertEncoder encoder = add_bert_encoder(*model.store, spec, Segments::ignored);
  const MaskedWordsHead head = add_masked_words_head(*model.store, spec, encoder.words);
  const std::shared_ptr<const Teacher> teacher = spec.teacher ? add_teacher(model, spec) : nullptr;
  model.forward = [student = MaskedLanguageModel{std::move(encoder), head}, teacher](Tape& tape,
                                                                                     const Batch& batch) {
    check_verses("distil_bert", batch);
    return learn_words(tape, student, teacher.get(), batch);
  };
  return model;
}

Model make_classifier(const ModelSpec& spec) {
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  BertEncoder encoder = add_bert_encoder(*model.store, spec, Segments::ignored);
  const LinearParameters dense =
      add_bert_matrix(*model.store, spec, "pre_classifier", spec.whole(embedding_size_option));
  const LinearParameters classes = add_bert_matrix(*model.store, spec, "classifier", spec.class_count);
  model.forward = [classifier = Classifier{std::move(encoder), dense, classes}](Tape& tape,
                                                                                const Batch& batch) {
    check_verses("distil_bert", batch);
    return learn_classes(tape, classifier, batch);
  };
  return model;
}

}  // namespace
}  // namespace distil_bert

namespace {

Model make_distil_bert(const ModelSpec& spec) {
  using namespace distil_bert;
  check_verses("distil_bert", spec);
  return spec.text_labels == TextLabels::text_class ? make_classifier(spec) : make_student(spec);
}

}  // namespace

constexpr ModelKind distil_bert_kind{
    make_distil_bert,
    {embedding_size_option, hidden_size_option, layers_option, heads_option, dropout_option}};

}  // namespace halfscope
