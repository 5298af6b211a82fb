// Orders of the first process, and the processes that follow them.
#include "sim/train/worker.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <span>
#include <utility>

#include <halfscope/core/parallel.hpp>

#include "sim/data/datasets.hpp"
#include "sim/train/build.hpp"
#include "sim/train/processes.hpp"
#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

/// An order is a word, and what belongs to it behind a line's end.
constexpr std::string_view begin_order = "begin\n", step_order = "step", end_order = "end";

void send_to_workers(std::string order) {
  if (process_count() > 1) broadcast(order);
}

std::string receive_order() {
  std::string order;
  broadcast(order);
  return order;
}

/// Settings and state of a run: a line of JSON, then the checkpoint as JSON of names, shapes and bits.
std::string begin_text(const TrainConfig& config, const SafetensorsFile& checkpoint) {
  Json tensors = Json::array();
  std::string bytes;
  for (const NamedArray& tensor : checkpoint.tensors) {
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.array.shape()}});
    const auto own = std::as_bytes(tensor.array.values());
    bytes.append(reinterpret_cast<const char*>(own.data()), own.size());
  }
  const Json head{{"config", to_json(config)},
                  {"threads", thread_count()},
                  {"metadata", checkpoint.metadata},
                  {"tensors", tensors}};
  return head.dump() + "\n" + bytes;
}

TrainConfig config_from(const Json& json) {
  TrainConfig config;
  const Json settings = settings_of(json);
  for (const auto& [key, value] : settings.items())
    set_field(config, key, value.is_string() ? value.get<std::string>() : value.dump());
  return config;
}

SafetensorsFile checkpoint_from(const Json& head, std::string_view bytes) {
  SafetensorsFile checkpoint;
  for (const auto& [key, value] : head.at("metadata").items())
    checkpoint.metadata[key] = value.get<std::string>();
  for (const Json& tensor : head.at("tensors")) {
    Array array(tensor.at("shape").get<Shape>(), Device::cpu);
    const std::size_t size = array.size() * sizeof(float);
    std::memcpy(array.data(), bytes.data(), size);
    bytes.remove_prefix(size);
    checkpoint.tensors.push_back({tensor.at("name").get<std::string>(), std::move(array)});
  }
  return checkpoint;
}

/// A run in training, with the data set that it reads.
struct FollowedRun {
  std::unique_ptr<Dataset> dataset;
  Trainer trainer;

  FollowedRun(const TrainConfig& config, std::unique_ptr<Dataset> opened)
      : dataset(std::move(opened)), trainer(config, *dataset) {}
};

std::unique_ptr<FollowedRun> begin_run(std::string_view text) {
  const std::size_t line = text.find('\n');
  const Json head = Json::parse(text.substr(0, line));
  const TrainConfig config = config_from(head.at("config"));
  set_thread_count(head.at("threads").get<int>());
  auto run = std::make_unique<FollowedRun>(config, open_dataset(config.dataset, dataset_spec(config)));
  const SafetensorsFile state = checkpoint_from(head, text.substr(line + 1));
  if (state.metadata.at("step") == "0") {
    run->trainer.start_from(state);  // the optimizer and the scalers have no state yet
  } else {
    run->trainer.restore(state);
  }
  return run;
}

}  // namespace

Workers::Workers(const RunSettings& settings, Trainer& trainer) {
  if (process_count() > 1)
    send_to_workers(std::string(begin_order) + begin_text(settings.config, trainer.checkpoint()));
}

void Workers::step() const {
  send_to_workers(std::string(step_order));
}

void Workers::end_program() {
  send_to_workers(std::string(end_order));
}

void work_for_first_process() {
  std::unique_ptr<FollowedRun> run;
  for (std::string order = receive_order(); order != end_order; order = receive_order()) {
    if (order.starts_with(begin_order)) {
      run = begin_run(std::string_view(order).substr(begin_order.size()));
      continue;
    }
    (void)run->trainer.step();
  }
}

}  // namespace halfscope
