// The header is JSON: name -> dtype, shape, data_offsets.
#include <halfscope/io/safetensors/detail/safetensors_header.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/json/detail/json_errors.hpp>
#include <halfscope/io/json/detail/json_members.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t longest_safetensors_header = 100'000'000;

/// A JSON value for a message.
std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return excerpt(value.get_ref<const std::string&>());
  return value.is_structured() ? std::string(value.type_name()) : to_line(value);
}

const nlohmann::json& field(const nlohmann::json& entry, const char* key, std::string_view where) {
  if (!entry.is_object()) refuse(where, "expected an object with dtype, shape and data_offsets");
  const auto found = entry.find(key);
  if (found == entry.end()) refuse(where, fmt::format("{} is missing", key));
  return *found;
}

SafetensorsType parse_type(const nlohmann::json& value, std::string_view where) {
  if (!value.is_string()) refuse(where, fmt::format("dtype {} is not a string", shown(value)));
  const auto& name = value.get_ref<const std::string&>();
  const auto* const found = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                         [&](const SafetensorsType& type) { return type.name == name; });
  if (found == safetensors_types.end()) refuse(where, fmt::format("dtype {} is unknown", excerpt(name)));
  return *found;
}

Shape parse_shape(const nlohmann::json& value, std::string_view where) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_array()) refuse(where, "shape is not an array");
  Shape shape;
  for (const auto& extent : value) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > largest) {
      refuse(where, fmt::format("shape: {} is not an extent; expected a whole number from 0", shown(extent)));
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

SafetensorsEntry parse_entry(const std::string& name, const nlohmann::json& value, std::string_view source) {
  const std::string where = fmt::format("{}: tensor {}", source, excerpt(name));
  SafetensorsEntry entry{name, parse_type(field(value, "dtype", where), where),
                         parse_shape(field(value, "shape", where), where)};
  const auto& offsets = field(value, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    refuse(where, "data_offsets is not a pair of whole numbers from 0");
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const std::uint64_t bits = checked_size(entry.shape, entry.type.bits, where);
  if (entry.end < entry.begin || bits % 8 != 0 || entry.end - entry.begin != bits / 8) {
    refuse(where, fmt::format("data_offsets [{}, {}] do not span the {} bytes of {} {}", entry.begin,
                              entry.end, (bits + 7) / 8, entry.type.name, to_string(entry.shape)));
  }
  return entry;
}

/// Sorts `entries` by name; throws where two have the same.
void check_names(std::vector<SafetensorsEntry>& entries, std::string_view where) {
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name < b.name; });
  const auto repeated = std::adjacent_find(
      entries.begin(), entries.end(),
      [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name == b.name; });
  if (repeated != entries.end()) refuse_json_key(where, repeated->name);
}

/// Sorts `entries` by their place in the data; throws unless they fill all `size` bytes of it, each byte
/// once.
void check_cover(std::vector<SafetensorsEntry>& entries, std::uint64_t size, std::string_view source) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t filled = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != filled) {
      refuse(source, fmt::format("tensor {}: data_offsets [{}, {}] {} the data before it, which ends at {}",
                                 excerpt(entry.name), entry.begin, entry.end,
                                 entry.begin < filled ? "overlap" : "leave a gap after", filled));
    }
    filled = entry.end;
  }
  if (filled > size) {
    refuse(source,
           fmt::format("truncated: the tensors take {} bytes of data, the file has {}", filled, size));
  }
  if (filled < size) refuse(source, fmt::format("{} bytes follow the last tensor's data", size - filled));
}

std::map<std::string, std::string> parse_metadata(const nlohmann::json& value, std::string_view source) {
  if (value.is_null()) return {};  // as the reference reader takes it
  if (!value.is_object()) refuse(source, "__metadata__ is not an object of strings");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) refuse(source, fmt::format("__metadata__: {} is not a string", excerpt(key)));
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

}  // namespace

std::uint64_t safetensors_header_length(std::string_view first_bytes, std::uint64_t file_size,
                                        std::string_view source) {
  if (file_size < safetensors_length_bytes) {
    refuse(source,
           fmt::format("{} bytes, but a safetensors file starts with 8 for the header's length", file_size));
  }
  std::uint64_t length;
  std::memcpy(&length, first_bytes.data(), safetensors_length_bytes);
  if (length > longest_safetensors_header) {
    refuse(source,
           fmt::format("byte 0: header length {} is over the format's limit of {}; is it a safetensors file?",
                       length, longest_safetensors_header));
  }
  if (length > file_size - safetensors_length_bytes) {
    refuse(source, fmt::format("truncated: the header ends at byte {}, the file at {}",
                               safetensors_length_bytes + length, file_size));
  }
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_size,
                                           std::string_view source) {
  const std::string where = fmt::format("{}: header", source);
  SafetensorsHeader header;
  bool has_metadata = false;
  const bool is_object =
      read_json_members(text, where, [&](const std::string& name, const nlohmann::json& value) {
        if (name != safetensors_metadata_key)
          return header.tensors.push_back(parse_entry(name, value, source));
        if (std::exchange(has_metadata, true)) refuse_json_key(where, name);
        header.metadata = parse_metadata(value, source);
      });
  if (!is_object) refuse(source, "byte 8: the header is not a JSON object");
  check_names(header.tensors, where);
  check_cover(header.tensors, data_size, source);
  return header;
}

}  // namespace halfscope
