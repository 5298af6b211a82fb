// Names of a file as tables; what a layout has taken is found no more.
#include <halfscope/io/layouts/detail/file_parts.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {

FileParts::FileParts(const TensorFile& file, const std::string& file_name, const QuantizedReading& reading)
    : file_(file), file_name_(file_name), reading_(reading), names_(file) {}

std::optional<CodeSource> FileParts::find(const std::string& name, std::string_view byte_type) const {
  if (auto numbers = find_numbers(name)) return numbers;
  const StoredCodes* codes = find_codes(name);
  return codes == nullptr ? std::nullopt : source_of(*codes, byte_type);
}

std::optional<CodeSource> FileParts::find_numbers(const std::string& name) const {
  const auto tensor = names_.tensors.find(name);
  if (tensor == names_.tensors.end() || taken_.contains(name)) return std::nullopt;
  return source_of(file_, tensor->second);
}

const StoredCodes* FileParts::find_codes(const std::string& name, std::string_view type) const {
  const auto codes = names_.codes.find(name);
  if (codes == names_.codes.end() || taken_.contains(name)) return nullptr;
  const StoredCodes& found = file_.codes()[codes->second];
  return type.empty() || found.type == type ? &found : nullptr;
}

bool FileParts::holds(const std::string& name) const {
  return names_.tensors.contains(name) || names_.codes.contains(name);
}

bool FileParts::has_codes(const std::string& name) const {
  if (const auto tensor = names_.tensors.find(name); tensor != names_.tensors.end())
    return bytes_per_element(file_.tensors()[tensor->second].type) == 1;
  const auto codes = names_.codes.find(name);
  if (codes == names_.codes.end()) return false;
  const std::string& type = file_.codes()[codes->second].type;
  return type == "U8" || type == "I8" || (find_code_type(type) != nullptr && type != "F8_E8M0");
}

std::vector<std::string> FileParts::names_with(const std::string& prefix) const {
  if (sorted_.empty()) {
    for (const StoredTensor& tensor : file_.tensors()) sorted_.push_back(tensor.name);
    for (const StoredCodes& codes : file_.codes()) sorted_.push_back(codes.name);
    std::ranges::sort(sorted_);
  }
  std::vector<std::string> names;
  auto at = std::ranges::lower_bound(sorted_, prefix);
  for (; at != sorted_.end() && at->starts_with(prefix) && names.size() < most_names; ++at)
    names.emplace_back(*at);
  return names;
}

std::string FileParts::place_of(const std::string& missing, const std::string& partner) const {
  const auto other = reading_.beside ? reading_.beside(missing, partner) : std::nullopt;
  if (!other) return "not in the file; give the one that has it too";
  if (other->is_shard) return fmt::format("in {}; give that file too", other->name);
  return fmt::format(
      "in {} too, but neither an index nor numbered names say that the two are one checkpoint; if they are, "
      "name them model-00001-of-00002 and so on, and give both",
      other->name);
}

float FileParts::largest_of(const CodeSource& source) const {
  std::vector<float> values(static_cast<std::size_t>(source.elements()));
  source.read(file_, 0, values);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

bool FileParts::is_all_zero(const StoredCodes& codes) const {
  std::vector<std::byte> bytes(1 << 16);
  for (std::uint64_t at = 0; at < codes.bytes; at += bytes.size()) {
    const auto piece = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), codes.bytes - at));
    file_.read_bytes(codes, at, piece);
    if (std::ranges::any_of(piece, [](std::byte byte) { return byte != std::byte{0}; })) return false;
  }
  return true;
}

void FileParts::forget_names() {
  names_.tensors = {};
  names_.codes = {};
  names_.skipped = {};
  sorted_ = {};
  taken_ = {};
}

void FileParts::refuse(const std::string& name, const std::string& why) {
  note(name, fmt::format("is not read: {}", why));
  take(name);
  leave(name);
}

void FileParts::take_back(std::size_t index, const std::string& why) {
  const std::string name = tensors_[index]->stored().name;
  tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
  refuse(name, why);
}

void FileParts::note(const std::string& name, const std::string& line) {
  problems_.push_back(fmt::format("{}: tensor {} {}", file_name_, excerpt(name), line));
}

std::optional<std::string> without_ending(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix) || name.size() == suffix.size()) return std::nullopt;
  return std::string(name.substr(0, name.size() - suffix.size()));
}

}  // namespace halfscope
