// The module halfscope._core: errors as Python knows them, and everything that is bound.
#include <halfscope/core/error.hpp>
#include <halfscope/core/parallel.hpp>

#include "binding/bindings.hpp"

namespace {

/// A request that cannot be right is a ValueError; other errors are RuntimeErrors, as nanobind makes them.
void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const halfscope::InvalidArgument& request) {
    PyErr_SetString(PyExc_ValueError, request.what());
  }
}

}  // namespace

NB_MODULE(_core, module) {
  namespace python = halfscope::python;
  nanobind::register_exception_translator(translate);
#ifdef NDEBUG
  // Objects that a script still holds at its end are no fault of this module.
  nanobind::set_leak_warnings(false);
#endif
  module.attr("__version__") = HALFSCOPE_VERSION;
  module.def(
      "set_thread_count", halfscope::set_thread_count, nanobind::arg("threads"),
      "In how many threads large arrays are counted, 1 unless said otherwise; no result depends on it.\n\n"
      "Raises ValueError for less than 1.");
  python::bind_round(module);
  python::bind_blocks(module);
  python::bind_block_counts(module);
  python::bind_format_comparison(module);
  python::bind_what_if(module);
  python::bind_histogram(module);
  python::bind_histogram_file(module);
  python::bind_dot(module);
  python::bind_matmul(module);
  python::bind_gather_matmul(module);
  python::bind_sum(module);
  python::bind_updates(module);
  python::bind_advice(module);
  python::bind_device(module);
  python::bind_memory(module);
  python::bind_scalers(module);
  python::bind_replay(module);
  python::bind_lists(module);
  python::bind_casts(module);
  python::bind_confidence(module);
  python::bind_constants(module);
  python::bind_policies(module);
  python::bind_operands(module);
  python::bind_tensor_file(module);
  python::bind_explorer(module);
}
