// The safetensors format: named arrays in one file that every framework reads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope {

struct NamedArray {
  std::string name;
  Array array;
};

/// Content of a safetensors file; the tensors are in the order of their data in the file.
struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  std::vector<NamedArray> tensors;
};

/// Reads a file of F32 tensors. Throws InvalidArgument with the file, the tensor and the byte or value that
/// is wrong; the rules are those of the reference reader (huggingface/safetensors, "Format"): a header of at
/// most 100 MB, no key twice, and tensors that fill the data without gap, overlap or rest.
[[nodiscard]] SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// The same from the file's bytes; `source` names them in messages.
[[nodiscard]] SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view source);

/// Writes `file` whole or not at all, see write_file. Every NaN is written as the one NaN (quiet_nan_bits),
/// since its bits say which processor made it: the same numbers give the same bytes. Throws InvalidArgument
/// where two tensors have one name or a name is not UTF-8, RuntimeFailure where the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

}  // namespace halfscope
