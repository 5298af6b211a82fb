// Trains a few steps and writes what a peer needs to train the same: initial weights, batches, learning
// rates, losses, the weights at the end as after.NAME, and of observed steps the counters of casts as
// counts.STEP.ROLE.TENSOR: elements, zeros, flushed, subnormal, overflow; of operands with formats of their
// own as operand_counts.STEP.LAYER.PRODUCT.SIDE, as `add_operand_counts` orders them.
//
//   export_training FILE.safetensors [key=value ...]      settings as `halfscope run --set` takes them
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/data/datasets.hpp"
#include "sim/train/start_weights.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

TrainConfig parse(std::span<const std::string> settings) {
  TrainConfig config{.observe_every = 0};
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) throw InvalidArgument("'" + setting + "': give key=value");
    set_field(config, setting.substr(0, equals), setting.substr(equals + 1));
  }
  return config;
}

/// (box, 6): place in the batch, class, top, left, bottom, right.
Array table_of(const std::vector<Box>& boxes) {
  Array table({static_cast<std::int64_t>(boxes.size()), 6});
  float* to = table.data();
  for (const Box& box : boxes) {
    for (const float value : {static_cast<float>(box.example), static_cast<float>(box.label), box.top,
                              box.left, box.bottom, box.right}) {
      *to++ = value;
    }
  }
  return table;
}

Array as_floats(const std::vector<std::int32_t>& labels) {
  Array array({static_cast<std::int64_t>(labels.size())});
  std::ranges::copy(labels, array.data());
  return array;
}

/// Adds the parts of a batch beside images and boxes: "labels.0" and so on, as floats.
void add_texts(const Batch& batch, std::int64_t step, SafetensorsFile& file) {
  const auto add = [&](const char* name, const std::vector<std::int32_t>& values) {
    file.tensors.push_back({fmt::format("{}.{}", name, step), as_floats(values)});
  };
  add("labels", batch.labels);
  add("tokens", batch.tokens);
  add("decoder_tokens", batch.decoder_tokens);
  add("lengths", batch.lengths);
  add("label_counts", batch.label_counts);
  add("segments", batch.segments);
  add("masked", batch.masked);
  add("follows", batch.follows);
}

/// Adds the counters of each tensor, summed over the casts that have rounded it.
void add_counters(const StepRecord& record, SafetensorsFile& file) {
  if (!record.observations) return;
  std::map<std::string, std::array<std::int64_t, 5>> counts;
  for (const TensorCounters& tensor : record.observations->tensors) {
    const CastCounters& c = tensor.counters;
    auto& total = counts[fmt::format("counts.{}.{}.{}", record.step, name_of(tensor.role), tensor.tensor)];
    const std::array cast{tensor.elements, c.zeros, c.flushed, c.subnormal, c.overflow};
    std::ranges::transform(total, cast, total.begin(), std::plus{});
  }
  for (const auto& [name, total] : counts) {
    Array numbers({std::ssize(total)});
    std::ranges::copy(total, numbers.data());
    file.tensors.push_back({name, std::move(numbers)});
  }
}

/// Counts of operands with formats of their own.
void add_operand_counts(const StepRecord& record, SafetensorsFile& file) {
  if (!record.observations) return;
  for (const OperandCounters& operand : record.observations->operands) {
    const BlockCounts& c = operand.counts;
    const std::array counted{c.elements, c.zeros,  c.flushed,        c.subnormal,
                             c.clipped,  c.blocks, c.clipped_blocks, c.zero_scales};
    Array numbers({std::ssize(counted)});
    std::ranges::copy(counted, numbers.data());
    file.tensors.push_back(
        {fmt::format("operand_counts.{}.{}.{}", record.step, operand.layer, to_string(operand.place)),
         std::move(numbers)});
  }
}

SafetensorsFile train(const TrainConfig& config) {
  const auto dataset = open_dataset(config.dataset, dataset_spec(config));
  Trainer trainer(with_teacher(parsed(config)), *dataset);
  Sampler sampler(dataset->size(Split::train), config.batch, static_cast<std::uint64_t>(config.seed),
                  dataset->batch_order());
  SafetensorsFile file = trainer.checkpoint();
  Array losses({config.steps}), rates({config.steps});
  for (std::int64_t step = 0; step < config.steps; ++step) {
    Batch batch = dataset->batch(Split::train, sampler.indices(step));
    file.tensors.push_back({fmt::format("images.{}", step), std::move(batch.inputs)});
    file.tensors.push_back({fmt::format("boxes.{}", step), table_of(batch.boxes)});
    add_texts(batch, step, file);
    const StepRecord record = trainer.step();
    add_counters(record, file);
    add_operand_counts(record, file);
    losses[static_cast<std::size_t>(step)] = record.loss;
    rates[static_cast<std::size_t>(step)] = static_cast<float>(record.learning_rate);
  }
  file.tensors.push_back({"losses", std::move(losses)});
  file.tensors.push_back({"learning_rates", std::move(rates)});
  for (auto& tensor : trainer.checkpoint().tensors)
    file.tensors.push_back({"after." + tensor.name, std::move(tensor.array)});
  return file;
}

}  // namespace
}  // namespace halfscope

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    if (words.empty())
      throw halfscope::InvalidArgument("usage: export_training FILE.safetensors [key=value ...]");
    halfscope::write_safetensors(words[0], halfscope::train(halfscope::parse(std::span(words).subspan(1))));
  } catch (const std::exception& error) {
    fmt::print(stderr, "export_training: {}\n", error.what());
    return 2;
  }
}
