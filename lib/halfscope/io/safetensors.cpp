// Layout: header length (8 bytes, little-endian), header (JSON: name -> dtype, shape, data_offsets), the
// data.
#include <halfscope/io/safetensors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json_lines.hpp>

namespace halfscope {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::string_view metadata_key = "__metadata__";

/// A tensor as the header describes it; begin and end count bytes from the start of the data.
struct Entry {
  std::string name;
  Shape shape;
  std::uint64_t begin;
  std::uint64_t end;
};

[[noreturn]] void reject(std::string_view where, std::string_view problem) {
  throw RequestError(fmt::format("{}: {}", where, problem));
}

/// `value` as JSON, cut where a hostile file would make the message endless.
std::string excerpt(const Json& value) {
  constexpr std::size_t longest = 100;
  std::string text = to_line(value);
  if (text.size() > longest) text.replace(longest, std::string::npos, "...");
  return text;
}

std::uint64_t header_length(std::string_view bytes, std::string_view source) {
  if (bytes.size() < length_bytes) {
    reject(source, fmt::format("{} bytes, but a safetensors file starts with 8 for the header's length",
                               bytes.size()));
  }
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), length_bytes);
  if (length > longest_header) {
    reject(source,
           fmt::format("byte 0: header length {} is over the format's limit of {}; is it a safetensors file?",
                       length, longest_header));
  }
  if (length > bytes.size() - length_bytes) {
    reject(source, fmt::format("truncated: the header ends at byte {}, the file at {}", length_bytes + length,
                               bytes.size()));
  }
  return length;
}

const nlohmann::json& field(const nlohmann::json& entry, const char* key, std::string_view where) {
  if (!entry.is_object()) reject(where, "expected an object with dtype, shape and data_offsets");
  const auto found = entry.find(key);
  if (found == entry.end()) reject(where, fmt::format("{} is missing", key));
  return *found;
}

Shape parse_shape(const nlohmann::json& value, std::string_view where) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_array()) reject(where, "shape is not an array");
  Shape shape;
  for (const auto& extent : value) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > largest) {
      reject(where,
             fmt::format("shape: {} is not an extent; expected a whole number from 0", excerpt(extent)));
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

std::uint64_t bytes_of(const Shape& shape, std::string_view where) {
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      reject(where, "shape has more elements than memory can hold");
    }
  }
  return bytes;
}

Entry parse_entry(const std::string& name, const nlohmann::json& value, std::string_view source) {
  const std::string where = fmt::format("{}: tensor {}", source, excerpt(name));
  const auto& dtype = field(value, "dtype", where);
  if (dtype != "F32") reject(where, fmt::format("dtype {} cannot be read; only \"F32\" can", excerpt(dtype)));
  Entry entry{name, parse_shape(field(value, "shape", where), where), 0, 0};

  const auto& offsets = field(value, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    reject(where, "data_offsets is not a pair of whole numbers from 0");
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const std::uint64_t expected = bytes_of(entry.shape, where);
  if (entry.end < entry.begin || entry.end - entry.begin != expected) {
    reject(where, fmt::format("data_offsets [{}, {}] do not span the {} bytes of F32 {}", entry.begin,
                              entry.end, expected, to_string(entry.shape)));
  }
  return entry;
}

/// Sorted by their place in the data; throws unless they fill all `size` bytes of it, each byte once.
void check_cover(std::vector<Entry>& entries, std::uint64_t size, std::string_view source) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t filled = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != filled) {
      reject(source, fmt::format("tensor {}: data_offsets [{}, {}] {} the data before it, which ends at {}",
                                 excerpt(entry.name), entry.begin, entry.end,
                                 entry.begin < filled ? "overlap" : "leave a gap after", filled));
    }
    filled = entry.end;
  }
  if (filled > size) {
    reject(source,
           fmt::format("truncated: the tensors take {} bytes of data, the file has {}", filled, size));
  }
  if (filled < size) reject(source, fmt::format("{} bytes follow the last tensor's data", size - filled));
}

std::map<std::string, std::string> parse_metadata(const nlohmann::json& value, std::string_view source) {
  if (!value.is_object()) reject(source, "__metadata__ is not an object of strings");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) reject(source, fmt::format("__metadata__: {} is not a string", excerpt(key)));
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

nlohmann::json header_of(const SafetensorsFile& file) {
  auto header = nlohmann::json::object();
  if (!file.metadata.empty()) header[std::string(metadata_key)] = file.metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, array] : file.tensors) {
    const std::uint64_t end = offset + array.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", array.shape()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header;
}

void check_names(const std::vector<NamedArray>& tensors, std::string_view source) {
  std::vector<std::string_view> names{metadata_key};
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) {
    reject(source,
           fmt::format("tensor name {} is taken; each needs its own", excerpt(std::string(*repeated))));
  }
}

}  // namespace

SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view source) {
  const std::uint64_t length = header_length(bytes, source);
  const auto header =
      parse_sorted_json(bytes.substr(length_bytes, length), fmt::format("{}: header", source));
  if (!header.is_object()) reject(source, "byte 8: the header is not a JSON object");
  const std::string_view data = bytes.substr(length_bytes + length);

  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_key) {
      file.metadata = parse_metadata(value, source);
    } else {
      entries.push_back(parse_entry(name, value, source));
    }
  }
  check_cover(entries, data.size(), source);
  for (Entry& entry : entries) {
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
    reject(printable(path), "a tensor name or a metadata string is not UTF-8");
  }
  header.append((length_bytes - header.size() % length_bytes) % length_bytes, ' ');  // aligns the data

  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), length_bytes);
  bytes += header;
  for (const auto& tensor : file.tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.array.data()), tensor.array.size() * sizeof(float));
  }
  write_file(path, bytes);
}

}  // namespace halfscope
