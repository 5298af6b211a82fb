// Lines and keys that every command on files of tensors has.
#include "experiments/cli/tensors/files_read.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include <halfscope/core/escape.hpp>

#include "experiments/table/text_width.hpp"

namespace halfscope {
namespace {

std::string skipped_text(const std::vector<SkippedReport>& skipped, std::size_t width) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, skipped.size()); ++i)
    text += wrapped(fmt::format("skipped: {} ({})", skipped[i].name, skipped[i].reason), width, "  ") + "\n";
  if (skipped.size() > shown)
    text += fmt::format("skipped: {} more; --json lists them\n", skipped.size() - shown);
  return text;
}

}  // namespace

/// Files of one kind are one line.
std::string not_read_text(const FilesRead& read, std::size_t width) {
  std::map<std::string, std::vector<std::string>> files;
  for (const FileNotRead& file : read.not_read) files[file.reason].push_back(file.file);
  std::string text = skipped_text(read.skipped, width);
  for (const auto& [reason, names] : files) {
    const std::string more = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
    text += wrapped(fmt::format("not read: {}{}: {}", escaped(names[0]), more, reason), width, "  ") + "\n";
  }
  return text;
}

void add_files_json(Json& json, const FilesRead& read) {
  json["skipped"] = Json::array();
  for (const SkippedReport& skipped : read.skipped)
    json["skipped"].push_back({{"name", skipped.name}, {"reason", skipped.reason}});
  for (const FileNotRead& file : read.not_read)
    json["not_read"].push_back({{"file", escaped_bytes(file.file)}, {"reason", file.reason}});
  json["files"] = read.files;
}

}  // namespace halfscope
