// Folders, globs and indices, in the order of their names.
#include "experiments/cli/analyze/analyze_paths.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".index.json";

bool holds_tensors(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == ".npy" || extension == ".npz" || extension == ".safetensors";
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
      const bool is_folder = entry->is_directory() && !entry->is_symlink();
      const bool is_hidden = entry->path().filename().string().starts_with('.');
      if (is_hidden && is_folder) entry.disable_recursion_pending();
      if (!is_hidden && !entry->is_directory() && holds_tensors(entry->path()))
        files.push_back(entry->path().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw InvalidArgument(fmt::format("cannot read {}: {}",
                                      printable(error.path1().empty() ? fs::path(folder) : error.path1()),
                                      error.code().message()));
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw InvalidArgument(printable(folder) + ": no .npy, .npz or .safetensors file in it or below");
  return files;
}

std::vector<std::string> files_of_glob(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), GLOB_BRACE, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status != 0 || files.empty())
    throw InvalidArgument(fmt::format("no file matches '{}'", escaped(pattern)));
  return files;
}

/// The shards of a model, as Hugging Face's index lists them: {"weight_map": {tensor: file}}.
std::vector<std::string> files_of_index(const std::string& path) {
  const Json index = read_json(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object())
    throw InvalidArgument(printable(path) + ": no index of shards; it lacks an object 'weight_map'");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const fs::path name = file.is_string() ? file.get<std::string>() : std::string();
    const bool leads_out = std::find(name.begin(), name.end(), "..") != name.end() || name.is_absolute();
    if (name.empty() || leads_out) {
      throw InvalidArgument(fmt::format("{}: weight_map: '{}' is in {}; expected a file beside the index",
                                        printable(path), escaped(tensor), escaped(to_line(file))));
    }
    names.insert((fs::path(path).parent_path() / name).string());
  }
  if (names.empty()) throw InvalidArgument(printable(path) + ": weight_map names no file");
  return {names.begin(), names.end()};
}

std::vector<std::string> files_of(const std::string& word) {
  if (word == "-") {
    throw InvalidArgument(
        "standard input is not read, since tensors are read at any place; save it to a file");
  }
  std::error_code ignored;
  const bool exists = fs::exists(word, ignored);
  if (exists && fs::is_directory(word, ignored)) return files_below(word);
  if (exists && word.ends_with(index_ending)) return files_of_index(word);
  if (exists || word.find_first_of("*?[{") == std::string::npos) return {word};
  std::vector<std::string> files;
  for (const std::string& match : files_of_glob(word)) {
    for (std::string& file : files_of(match)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::vector<std::string> expand_paths(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& word : words) {
    for (std::string& file : files_of(word)) {
      struct stat status {};
      const bool exists = ::stat(file.c_str(), &status) == 0;
      if (!exists || seen.emplace(status.st_dev, status.st_ino).second) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace halfscope
