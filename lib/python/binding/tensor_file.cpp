// Files of tensors as NumPy arrays, for halfscope.analyze.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/checkpoint_files.hpp>
#include <halfscope/io/file.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* tensor_file_documentation =
    R"doc(Each file's path, tensors by name, what else it holds by name with the reason, findings of its quantized tensors
by name, and how many of those are not read; then lines about all.

paths: .npy, .npz, .safetensors, .gguf, checkpoints of PyTorch's, raw elements of `dtype`, which types the elements
that NumPy saves as bytes too: f16, bf16, f32, f64, f8_e4m3 or f8_e5m2; folders of such files, globs, and indices of
shards. Every type becomes float32: float16, bfloat16 and float8 exactly, float64 rounded to odd, so that counts stay
exact. A quantized tensor is its payload times its scales, from two of the files where they lie in two. A line says what
an index and its files contradict each other in, which part of a quantized tensor is missing, and what of a folder is
not read. Raises ValueError with the file, and the byte or tensor, for one that breaks its format.)doc";

/// `name` as a text of Python's; bytes that are no UTF-8 stand as escapes.
nb::object text_of(const std::string& name) {
  return nb::steal(PyUnicode_DecodeUTF8(name.data(), std::ssize(name), "backslashreplace"));
}

nb::object read_tensor(const std::string& path, const TensorFile& file, std::size_t index) {
  const StoredTensor& tensor = file.tensors()[index];
  auto values = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(tensor.elements));
  {
    const nb::gil_scoped_release release;
    file.read_row_major(index, {values.get(), static_cast<std::size_t>(tensor.elements)});
  }
  const nb::object array =
      to_array(std::move(values), {tensor.shape.begin(), tensor.shape.end()}, nb::none());
  // With more axes than NumPy has it makes an array of one object, without axes.
  if (nb::cast<std::size_t>(array.attr("ndim")) != tensor.shape.size())
    throw InvalidArgument(fmt::format("{}: tensor '{}': NumPy has no arrays of shape {}", printable(path),
                                      escaped(tensor.name), to_string(tensor.shape)));
  return array;
}

/// A list of blocks as JSON has it.
nb::dict dict_of(const BlockList& list) {
  nb::dict found;
  found["count"] = list.count;
  found["indices"] = list.indices;
  found["left_out"] = list.left_out();
  return found;
}

/// Findings without an original, as `halfscope analyze --json` has them.
nb::dict dict_of(const BlockFindings& findings) {
  nb::dict found;
  found["layout"] = findings.layout;
  found["blocks"] = findings.blocks;
  for (const BlockKind& kind : block_kinds) {
    const bool is_there = findings.has_codes || !kind.is_of_codes;
    found[kind.key] = is_there ? nb::object(dict_of(findings.*kind.list)) : nb::none();
  }
  if (findings.whole_scale) found["whole_scale"] = findings.whole_scale->value;
  return found;
}

std::string verdict_on(const std::vector<std::pair<std::string, BlockFindings>>& tensors,
                       std::size_t unread) {
  std::vector<NamedFindings> named;
  for (const auto& [name, findings] : tensors) named.push_back({name, &findings});
  return fmt::format("{}", fmt::join(quantized_verdict(named, unread), " "));
}

void bind_block_findings(nb::module_& module) {
  nb::class_<BlockFindings>(module, "BlockFindings", "State of a quantized tensor's blocks.")
      .def_ro("layout", &BlockFindings::layout, "types of codes and scales, and the blocks, in words")
      .def_ro("blocks", &BlockFindings::blocks)
      .def(
          "to_dict", [](const BlockFindings& found) { return dict_of(found); },
          "The object under `blocks` that `halfscope analyze --json` prints.");
  module.def("quantized_verdict", verdict_on, nb::arg("tensors"), nb::arg("unread"),
             "Sentences on quantized tensors, pairs of a name and findings; `unread` others are not read.");
}

nb::tuple read_file(const std::string& path, const QuantizedFile& file) {
  nb::dict tensors, skipped, findings;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    tensors[text_of(file.tensors()[i].name)] = read_tensor(path, file, i);
    if (file.has_blocks(i)) findings[text_of(file.tensors()[i].name)] = file.findings(i, {});
  }
  for (const SkippedTensor& other : file.skipped()) skipped[text_of(other.name)] = other.reason;
  return nb::make_tuple(std::filesystem::path(path), tensors, skipped, findings, file.unread().size());
}

nb::tuple read_files(const std::vector<std::filesystem::path>& words,
                     const std::optional<std::string>& dtype) {
  StatedType stated(std::nullopt, "dtype=");
  if (dtype) stated.type = parse_enum<DType>("dtype", *dtype);
  CheckpointFiles checkpoint(expand_paths({words.begin(), words.end()}), stated);
  std::vector<std::string> lines = checkpoint.paths().problems;
  nb::list files;
  for (const std::string& path : checkpoint.paths().files) {
    const CheckpointFile opened = checkpoint.open(path);
    for (const auto* const more : {&opened.contradictions, &opened.file->problems()})
      lines.insert(lines.end(), more->begin(), more->end());
    files.append(read_file(path, *opened.file));
  }
  for (const auto& [file, reason] : checkpoint.paths().not_read)
    lines.push_back(printable(file) + ": not read: " + reason);
  return nb::make_tuple(files, lines);
}

}  // namespace

void bind_tensor_file(nb::module_& module) {
  bind_block_findings(module);
  module.def("read_tensor_files", read_files, nb::arg("paths"), nb::arg("dtype").none() = nb::none(),
             nb::sig("def read_tensor_files(paths: list[str | os.PathLike], dtype: str | None = None) -> "
                     "tuple[list[tuple[pathlib.Path, dict[str, numpy.ndarray], dict[str, str], dict[str, "
                     "BlockFindings], int]], list[str]]"),
             tensor_file_documentation);
}

}  // namespace halfscope::python
