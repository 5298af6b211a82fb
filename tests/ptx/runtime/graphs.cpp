// Comparison of recordings, operation by operation.
#include "tests/ptx/runtime/graphs.hpp"

namespace halfscope::ptx {
namespace {

cudaGraphExecUpdateResult compare(const Operation& present, const Operation& changed) {
  if (present.kind != changed.kind) return cudaGraphExecUpdateErrorNodeTypeChanged;
  if (present.name == changed.name) return cudaGraphExecUpdateSuccess;
  return present.kind == OperationKind::kernel ? cudaGraphExecUpdateErrorFunctionChanged
                                               : cudaGraphExecUpdateErrorParametersChanged;
}

}  // namespace

cudaGraphExecUpdateResult compare(const Recording& present, const Recording& changed) {
  if (present.size() != changed.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const cudaGraphExecUpdateResult result = compare(present[i], changed[i]);
    if (result != cudaGraphExecUpdateSuccess) return result;
  }
  return cudaGraphExecUpdateSuccess;
}

}  // namespace halfscope::ptx
