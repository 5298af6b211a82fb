// When a recording begins and ends, and the memory that it may use.
#include <halfscope/device/step_graph.hpp>

#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include <halfscope/device/detail/device_memory.hpp>

namespace halfscope {
namespace {

constexpr int runs_before_recording = 2;

/// The recording in progress.
thread_local StepGraph* recording = nullptr;

/// Released device memory by size, kept while a graph of the thread exists.
struct KeptBlocks {
  int graphs = 0;
  std::unordered_map<std::size_t, std::vector<void*>> free{};

  void release_all() {
    for (const auto& [bytes, blocks] : free) {
      for (void* block : blocks) device_memory::release(block, bytes);
    }
    free.clear();
  }
};
thread_local KeptBlocks kept;

}  // namespace

StepGraph::StepGraph() {
  ++kept.graphs;
}

StepGraph::~StepGraph() {
  if (executable_ != nullptr) device_memory::release_graph(executable_);
  if (--kept.graphs == 0) kept.release_all();
}

void StepGraph::run(const std::function<void()>& queue) {
  if (runs_++ < runs_before_recording) return queue();
  device_memory::begin_recording();
  recording = this;
  try {
    queue();
  } catch (...) {
    if (std::exchange(recording, nullptr) != nullptr) device_memory::drop_recording();
    throw;
  }
  if (std::exchange(recording, nullptr) == nullptr) return;  // cut
  launch();
  ++counts_.whole;
}

void StepGraph::launch() {
  if (device_memory::launch_recording(executable_)) ++counts_.updated;
}

void cut_recording() {
  StepGraph* const graph = std::exchange(recording, nullptr);
  if (graph == nullptr) return;
  graph->launch();
  ++graph->counts_.cut;
}

namespace detail {

void* take_kept_block(std::size_t bytes) {
  if (kept.graphs == 0) return nullptr;
  const auto found = kept.free.find(bytes);
  if (found == kept.free.end() || found->second.empty()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  return block;
}

bool keep_block(void* memory, std::size_t bytes) noexcept {
  if (kept.graphs == 0) return false;
  try {
    kept.free[bytes].push_back(memory);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace detail
}  // namespace halfscope
