// Recordings as CUDA graphs, captured from this thread's stream.
#include <memory>
#include <utility>

#include <halfscope/device/detail/device_cuda.cuh>
#include <halfscope/device/detail/device_memory.hpp>
#include <halfscope/device/detail/staging.cuh>

namespace halfscope::device_memory {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<CUgraph_st, DestroyGraph>;

Graph end_capture() {
  cudaGraph_t captured = nullptr;
  cuda::check(cudaStreamEndCapture(cuda::stream(), &captured), "cudaStreamEndCapture");
  return Graph(captured);
}

/// Whether `executable` does what `graph` says from now on.
bool update(cudaGraphExec_t executable, const Graph& graph) {
  cudaGraphExecUpdateResultInfo info{};
  if (cudaGraphExecUpdate(executable, graph.get(), &info) == cudaSuccess) return true;
  (void)cudaGetLastError();  // it has another shape: no error
  return false;
}

}  // namespace

void begin_recording() {
  cuda::staging().make_room();
  cuda::check(cudaStreamBeginCapture(cuda::stream(), cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
}

bool launch_recording(void*& graph) {
  const Graph captured = end_capture();
  auto executable = static_cast<cudaGraphExec_t>(graph);
  const bool updated = executable != nullptr && update(executable, captured);
  if (!updated) {
    if (executable != nullptr) release_graph(std::exchange(graph, nullptr));
    cuda::check(cudaGraphInstantiate(&executable, captured.get(), 0), "cudaGraphInstantiate");
    graph = executable;
  }
  cuda::check(cudaGraphLaunch(executable, cuda::stream()), "cudaGraphLaunch");
  return updated;
}

void drop_recording() noexcept {
  cudaGraph_t captured = nullptr;
  (void)cudaStreamEndCapture(cuda::stream(), &captured);
  (void)cudaGetLastError();  // the recording may have become invalid
  if (captured != nullptr) (void)cudaGraphDestroy(captured);
}

void release_graph(void* graph) noexcept {
  (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

}  // namespace halfscope::device_memory
