// Layout: header length (8 bytes, little-endian), header (JSON, see safetensors_header.hpp), the data.
#include <halfscope/io/safetensors/safetensors.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/safetensors/detail/safetensors_header.hpp>

namespace halfscope {
namespace {

nlohmann::json header_of(const SafetensorsFile& file) {
  auto header = nlohmann::json::object();
  if (!file.metadata.empty()) header[std::string(safetensors_metadata_key)] = file.metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, array] : file.tensors) {
    const std::uint64_t end = offset + array.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", array.shape()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header;
}

void check_names(const std::vector<NamedArray>& tensors, std::string_view source) {
  std::vector<std::string_view> names{safetensors_metadata_key};
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) {
    refuse(source, fmt::format("tensor name {} is taken; each needs its own", excerpt(*repeated)));
  }
}

void append_floats(std::string& bytes, std::span<const float> values) {
  const std::size_t first = bytes.size();
  bytes.resize(first + values.size_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float stored = with_one_nan(values[i]);
    std::memcpy(bytes.data() + first + i * sizeof stored, &stored, sizeof stored);
  }
}

}  // namespace

SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view source) {
  const std::uint64_t length = safetensors_header_length(bytes, bytes.size(), source);
  const std::string_view data = bytes.substr(safetensors_length_bytes + length);
  auto header = parse_safetensors_header(bytes.substr(safetensors_length_bytes, length), data.size(), source);

  SafetensorsFile file{std::move(header.metadata), {}};
  for (SafetensorsEntry& entry : header.tensors) {
    if (entry.type.stored != DType::f32) {
      refuse(source, fmt::format("tensor {}: dtype \"{}\" cannot be read; only \"F32\" can",
                                 excerpt(entry.name), entry.type.name));
    }
    Array array(std::move(entry.shape));
    if (!array.empty()) std::memcpy(array.data(), data.data() + entry.begin, entry.end - entry.begin);
    file.tensors.push_back({std::move(entry.name), std::move(array)});
  }
  return file;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), printable(path));
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file) {
  check_names(file.tensors, printable(path));
  std::string header;
  try {
    header = header_of(file).dump();
  } catch (const nlohmann::json::type_error&) {
    refuse(printable(path), "a tensor name or a metadata string is not UTF-8");
  }
  header.append(
      (safetensors_length_bytes - header.size() % safetensors_length_bytes) % safetensors_length_bytes,
      ' ');  // aligns the data

  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), safetensors_length_bytes);
  bytes += header;
  for (const auto& tensor : file.tensors) append_floats(bytes, tensor.array.values());
  write_file(path, bytes);
}

}  // namespace halfscope
