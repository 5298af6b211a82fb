// Looks at arrays before and after DLPack hands them over.
#include "binding/array_source.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace halfscope::python {
namespace nb = nanobind;
namespace {

std::string text_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value));
}

/// "list", "ndarray of >f4".
std::string describe(nb::handle object) {
  const std::string type = text_of(object.type().attr("__name__"));
  return nb::hasattr(object, "dtype") ? fmt::format("{} of {}", type, text_of(object.attr("dtype"))) : type;
}

/// A PyTorch tensor that takes part in a gradient hands out its elements only when asked to forget that, and
/// one whose sign is a note beside the elements (`imag` of a conjugate) hands out the other sign.
nb::object plain_of(nb::handle source) {
  const bool recorded =
      nb::bool_(nb::getattr(source, "requires_grad", nb::bool_(false))) && nb::hasattr(source, "detach");
  nb::object plain = recorded ? source.attr("detach")() : nb::borrow(source);
  const bool negated = nb::hasattr(plain, "is_neg") && nb::cast<bool>(plain.attr("is_neg")());
  return negated ? plain.attr("resolve_neg")() : plain;
}

bool is_torch_tensor(nb::handle source) {
  return nb::hasattr(source, "storage_offset") && nb::hasattr(source, "storage");
}

/// Numbers of 8 bits and fewer, and NumPy's bfloat16 of ml_dtypes: frameworks do not hand them over.
bool is_narrow_float(nb::handle source) {
  if (!nb::hasattr(source, "dtype")) return false;
  const std::string text = text_of(source.attr("dtype"));
  std::string_view name = text;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  const bool is_numpy = nb::hasattr(source, "__array_interface__");
  return name.starts_with("float8_") || name.starts_with("float6_") || name.starts_with("float4_") ||
         (name == "bfloat16" && is_numpy);
}

/// The same numbers as float32, which holds each of them.
nb::object widened(nb::handle source, std::string_view argument) {
  try {
    return is_torch_tensor(source) ? source.attr("float")() : source.attr("astype")("float32");
  } catch (const nb::python_error&) {
    throw nb::type_error(
        fmt::format("{}: {} cannot be converted to float32; if it is packed, give its bytes and scales to "
                    "halfscope.decode",
                    argument, describe(source))
            .c_str());
  }
}

/// Bytes of the storage that a PyTorch tensor is a view of.
std::int64_t storage_bytes(nb::handle tensor) {
  const char* name = nb::hasattr(tensor, "untyped_storage") ? "untyped_storage" : "storage";
  return nb::cast<std::int64_t>(tensor.attr(name)().attr("nbytes")());
}

/// Elements from the start of the storage to the end of the array.
std::int64_t extent_of(const Dlpack& array, nb::handle tensor) {
  auto elements = nb::cast<std::int64_t>(tensor.attr("storage_offset")()) + 1;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    elements += (static_cast<std::int64_t>(array.shape(axis)) - 1) * array.stride(axis);
  return elements;
}

/// PyTorch hands out null, or an offset from it, where a storage was freed or never there.
bool holds_elements(const Dlpack& array, nb::handle source) {
  if (array.size() == 0) return true;
  if (array.data() == nullptr) return false;
  return !is_torch_tensor(source) ||
         extent_of(array, source) * array.dtype().bits / 8 <= storage_bytes(source);
}

/// Axes that count, by stride.
std::vector<std::pair<std::int64_t, std::int64_t>> strides_and_sizes(const Dlpack& array) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    if (array.shape(axis) != 1) axes.emplace_back(array.stride(axis), array.shape(axis));
  }
  return axes;
}

bool without_gaps(const std::vector<std::pair<std::int64_t, std::int64_t>>& from_innermost) {
  std::int64_t expected = 1;
  for (const auto& [stride, size] : from_innermost) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

}  // namespace

Dlpack import_array(nb::handle source, std::string_view argument, std::string_view elements) {
  nb::object array = plain_of(source);
  if (is_narrow_float(array)) {
    // A tensor whose storage is freed is found by its bytes: PyTorch would read them to convert it.
    if (is_torch_tensor(array))
      (void)import_array(array.attr("view")(nb::module_::import_("torch").attr("uint8")), argument, elements);
    array = widened(array, argument);
  }
  Dlpack imported;
  if (!nb::ndarray_check(array) || !nb::try_cast(array, imported)) {
    throw nb::type_error(
        fmt::format("{}: cannot read {}; give {} {} array of NumPy, PyTorch or JAX, or another with "
                    "DLPack or the buffer protocol",
                    argument, describe(source), elements.starts_with("i") ? "an" : "a", elements)
            .c_str());
  }
  if (holds_elements(imported, array)) return imported;
  throw nb::value_error(
      fmt::format("{}: {} with {} elements and no memory that holds them; give a tensor whose storage is "
                  "not freed, and of a DTensor its to_local()",
                  argument, describe(source), imported.size())
          .c_str());
}

Dlpack import_for_stream(nb::handle source, std::uintptr_t stream) {
  nb::object array = plain_of(source);
  if (is_narrow_float(array)) array = widened(array, "array");
  return nb::cast<Dlpack>(array.attr("__dlpack__")(nb::arg("stream") = stream));
}

bool in_host_memory(const Dlpack& array) {
  const int device = array.device_type();
  return device == nb::device::cpu::value || device == nb::device::cuda_host::value;
}

bool is_contiguous(const Dlpack& array) {
  auto axes = strides_and_sizes(array);
  std::ranges::reverse(axes);
  return array.size() == 0 || without_gaps(axes);
}

bool is_dense(const Dlpack& array) {
  auto axes = strides_and_sizes(array);
  std::ranges::sort(axes);
  return array.size() == 0 || without_gaps(axes);
}

std::optional<DType> float_type(const Dlpack& array) {
  const nb::dlpack::dtype type = array.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  if (type == nb::dtype<float>()) return DType::f32;
  if (type == nb::dtype<double>()) return DType::f64;
  const bool halves = type.lanes == 1 && type.bits == 16;
  if (halves && code == nb::dlpack::dtype_code::Float) return DType::f16;
  if (halves && code == nb::dlpack::dtype_code::Bfloat) return DType::bf16;
  return std::nullopt;
}

}  // namespace halfscope::python
