// Files of tensors as NumPy arrays, for halfscope.analyze.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>

#include <halfscope/io/quantized_file.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* tensor_file_documentation =
    R"doc(The tensors of a file by name, what else it holds with the reason, and lines about quantized tensors.

path: .npy, .npz, .safetensors, .gguf, a checkpoint of PyTorch's, or raw elements of `dtype`, which types the elements
that NumPy saves as bytes too: f16, bf16, f32, f64, f8_e4m3 or f8_e5m2. Every type becomes float32: float16, bfloat16
and float8 exactly, float64 rounded to odd, so that counts stay exact. A quantized tensor is its payload times its
scales; one whose parts are not all in the file is a line. Raises ValueError with the file, and the byte or tensor, for
one that breaks its format.)doc";

nb::object read_tensor(const TensorFile& file, std::size_t index) {
  const StoredTensor& tensor = file.tensors()[index];
  auto values = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(tensor.elements));
  {
    const nb::gil_scoped_release release;
    file.read_row_major(index, {values.get(), static_cast<std::size_t>(tensor.elements)});
  }
  return to_array(std::move(values), {tensor.shape.begin(), tensor.shape.end()}, nb::none());
}

nb::tuple read_file(const std::filesystem::path& path, const std::optional<std::string>& dtype) {
  StatedType stated(std::nullopt, "dtype=");
  if (dtype) stated.type = parse_enum<DType>("dtype", *dtype);
  const std::unique_ptr<QuantizedFile> file =
      show_quantized(open_tensor_file(path, stated), path.string(), QuantizedView::values);
  nb::dict tensors, skipped;
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    tensors[file->tensors()[i].name.c_str()] = read_tensor(*file, i);
  }
  for (const SkippedTensor& other : file->skipped()) skipped[other.name.c_str()] = other.reason;
  return nb::make_tuple(tensors, skipped, file->problems());
}

}  // namespace

void bind_tensor_file(nb::module_& module) {
  module.def("read_tensor_file", read_file, nb::arg("path"), nb::arg("dtype").none() = nb::none(),
             nb::sig("def read_tensor_file(path: str | os.PathLike, dtype: str | None = None) -> "
                     "tuple[dict[str, numpy.ndarray], dict[str, str], list[str]]"),
             tensor_file_documentation);
}

}  // namespace halfscope::python
