// Declarations of the functions that add to the module halfscope._core, one per file of the binding.
#pragma once

#include <nanobind/nanobind.h>

namespace halfscope::python {

void bind_round(nanobind::module_& module);
void bind_blocks(nanobind::module_& module);
void bind_block_counts(nanobind::module_& module);
void bind_format_comparison(nanobind::module_& module);
void bind_what_if(nanobind::module_& module);
void bind_histogram(nanobind::module_& module);
void bind_histogram_file(nanobind::module_& module);
void bind_dot(nanobind::module_& module);
void bind_matmul(nanobind::module_& module);
void bind_gather_matmul(nanobind::module_& module);
void bind_sum(nanobind::module_& module);
void bind_updates(nanobind::module_& module);
void bind_advice(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_memory(nanobind::module_& module);
void bind_scalers(nanobind::module_& module);
void bind_replay(nanobind::module_& module);
void bind_lists(nanobind::module_& module);
void bind_casts(nanobind::module_& module);
void bind_confidence(nanobind::module_& module);
void bind_constants(nanobind::module_& module);
void bind_policies(nanobind::module_& module);
void bind_operands(nanobind::module_& module);
void bind_tensor_file(nanobind::module_& module);
void bind_explorer(nanobind::module_& module);

}  // namespace halfscope::python
