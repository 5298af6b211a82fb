// Folders, globs and indices, in the order of their names.
#include <halfscope/io/detail/checkpoint_paths.hpp>

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".index.json";

/// A pipe of that name is none: reading it might wait for ever.
bool is_index(const fs::path& path) {
  std::error_code ignored;
  return path.string().ends_with(index_ending) && fs::is_regular_file(path, ignored);
}

/// Contents of a folder and of those below it.
struct FolderContents {
  std::vector<std::string> files, indices, problems;
  std::vector<FileNotRead> not_read;

  void add(const fs::path& path) {
    if (is_index(path)) return indices.push_back(path.string());
    const FolderEntry entry = look_at_file(path);
    if (entry.role == FolderRole::tensors) files.push_back(path.string());
    if (entry.role == FolderRole::not_read) not_read.push_back({path.string(), entry.reason});
  }
};

/// A part that cannot be read is a problem, and the rest is taken.
void look_into(const fs::path& folder, FolderContents& contents) {
  std::error_code error;
  auto entry = fs::directory_iterator(folder, error);
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;  // a link to nothing, or to itself, is no folder
    if (path.filename().string().starts_with('.')) continue;
    if (entry->is_directory(ignored)) {
      if (!entry->is_symlink(ignored)) look_into(path, contents);
    } else {
      contents.add(path);
    }
  }
  if (error)
    contents.problems.push_back(fmt::format("cannot read {}: {}", printable(folder), error.message()));
}

FolderContents contents_of(const std::string& folder) {
  FolderContents contents;
  look_into(folder, contents);
  std::sort(contents.files.begin(), contents.files.end());
  std::ranges::sort(contents.not_read, {}, &FileNotRead::file);
  if (contents.files.empty() && !contents.problems.empty()) throw InvalidArgument(contents.problems.front());
  if (contents.files.empty()) {
    const std::string others =
        contents.not_read.empty()
            ? ""
            : fmt::format("; {} is {}", printable(contents.not_read[0].file), contents.not_read[0].reason);
    throw InvalidArgument(
        printable(folder) +
        ": no .npy, .npz or .safetensors file, no GGUF and no checkpoint of PyTorch's in it "
        "or below" +
        others);
  }
  return contents;
}

std::vector<std::string> files_of_glob(const std::string& pattern) {
  glob_t matches{};
  const int status = glob(pattern.c_str(), GLOB_BRACE, nullptr, &matches);
  std::vector<std::string> files(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  if (status != 0 || files.empty())
    throw InvalidArgument(fmt::format("no file matches '{}'", escaped(pattern)));
  return files;
}

/// The shards of a model, as Hugging Face's index lists them: {"weight_map": {tensor: file}}.
std::map<std::string, IndexEntry> shards_of(const std::string& path) {
  const Json index = read_json(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object())
    throw InvalidArgument(printable(path) + ": no index of shards; it lacks an object 'weight_map'");
  std::map<std::string, IndexEntry> shards;
  for (const auto& [tensor, file] : map->items()) {
    const fs::path name = file.is_string() ? file.get<std::string>() : std::string();
    const bool leads_out = std::find(name.begin(), name.end(), "..") != name.end() || name.is_absolute();
    if (name.empty() || leads_out) {
      throw InvalidArgument(fmt::format("{}: weight_map: '{}' is in {}; expected a file beside the index",
                                        printable(path), escaped(tensor), escaped(to_line(file))));
    }
    IndexEntry& shard = shards[(fs::path(path).parent_path() / name).string()];
    shard.index = path;
    shard.tensors.insert(tensor);
  }
  if (shards.empty()) throw InvalidArgument(printable(path) + ": weight_map names no file");
  return shards;
}

/// The first file that is missing stands for the others: of a download that broke off most are.
void add_index(const std::string& path, ExpandedPaths& paths) {
  std::map<std::string, IndexEntry> shards = shards_of(path);
  std::size_t missing = 0;
  for (auto& [file, shard] : shards) {
    std::error_code ignored;
    if (!fs::exists(file, ignored) && missing++ > 0) continue;
    paths.files.push_back(file);
    paths.indexed.insert_or_assign(file, std::move(shard));
  }
  if (missing > 1) {
    paths.problems.push_back(fmt::format("{}: {} of the {} files that it names are missing", printable(path),
                                         missing, shards.size()));
  }
}

/// Files beside the shards of an index that it does not name: of another save, as may be, under the same
/// names.
void leave_out_strays(const std::string& index, ExpandedPaths& paths) {
  const fs::path folder = fs::path(index).parent_path();
  std::string ending;
  for (const auto& [file, shard] : paths.indexed)
    if (shard.index == index) ending = fs::path(file).extension().string();
  std::erase_if(paths.files, [&](const std::string& file) {
    const fs::path path = file;
    const bool is_stray =
        path.parent_path() == folder && path.extension() == ending && !paths.indexed.contains(file);
    if (is_stray)
      paths.not_read.push_back(
          {file, fmt::format("{} beside it does not name it; give the file by itself to look at it",
                             printable(fs::path(index).filename()))});
    return is_stray;
  });
}

/// A folder's indices name some of its files, and tell what is missing in it.
void add_folder(const std::string& path, ExpandedPaths& paths) {
  const FolderContents contents = contents_of(path);
  paths.files.insert(paths.files.end(), contents.files.begin(), contents.files.end());
  paths.not_read.insert(paths.not_read.end(), contents.not_read.begin(), contents.not_read.end());
  paths.problems.insert(paths.problems.end(), contents.problems.begin(), contents.problems.end());
  for (const std::string& index : contents.indices) {
    try {
      add_index(index, paths);
      leave_out_strays(index, paths);
    } catch (const InvalidArgument&) {
      continue;  // nobody has named it: it may be the index of something else
    }
  }
}

/// Entries of the folder of `file`, by name.
std::vector<fs::path> entries_beside(const std::string& file) {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path(file).parent_path();
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder.empty() ? "." : folder, error);
       !error && entry != fs::end(entry); entry.increment(error))
    paths.push_back(folder / entry->path().filename());
  std::ranges::sort(paths);
  return paths;
}

void add_word(const std::string& word, ExpandedPaths& paths) {
  if (word == "-") {
    throw InvalidArgument(
        "standard input is not read, since tensors are read at any place; save it to a file");
  }
  std::error_code ignored;
  const bool exists = fs::exists(word, ignored);
  if (exists && fs::is_directory(word, ignored)) return add_folder(word, paths);
  if (exists && is_index(word)) return add_index(word, paths);
  if (exists || word.find_first_of("*?[{") == std::string::npos) return paths.files.push_back(word);
  for (const std::string& match : files_of_glob(word)) add_word(match, paths);
}

}  // namespace

ExpandedPaths expand_paths(const std::vector<std::string>& words) {
  ExpandedPaths paths;
  for (const std::string& word : words) add_word(word, paths);
  std::set<std::pair<dev_t, ino_t>> seen;
  std::set<std::string> missing;
  std::erase_if(paths.files, [&](const std::string& file) {
    struct stat status {};
    const bool exists = ::stat(file.c_str(), &status) == 0;
    return exists ? !seen.emplace(status.st_dev, status.st_ino).second : !missing.insert(file).second;
  });
  return paths;
}

std::optional<FilesByName> files_by_indices_beside(const std::string& file) {
  std::optional<FilesByName> files;
  for (const fs::path& path : entries_beside(file)) {
    if (!is_index(path)) continue;
    try {
      const auto shards = shards_of(path.string());
      if (!files) files.emplace();
      for (const auto& [shard, named] : shards)
        for (const std::string& tensor : named.tensors) files->add(tensor, shard);
    } catch (const InvalidArgument&) {
      continue;  // nobody has named it
    }
  }
  return files;
}

std::vector<std::string> files_like_it_beside(const std::string& file) {
  const fs::path path = file;
  std::vector<std::string> files;
  for (const fs::path& entry : entries_beside(file)) {
    if (entry.extension() == path.extension() && look_at_file(entry).role == FolderRole::tensors)
      files.push_back(entry.string());
  }
  return files;
}

std::string checkpoint_named_by(const std::string& file) {
  const fs::path path = file;
  static const std::regex numbered(R"((.*)-\d+(-of-\d+\..*))");
  std::smatch parts;
  const std::string name = path.filename().string();
  if (std::regex_match(name, parts, numbered))
    return (path.parent_path() / (parts.str(1) + parts.str(2))).string();
  for (const fs::path& entry : entries_beside(file)) {
    if (!is_index(entry)) continue;
    try {
      const auto shards = shards_of(entry.string());
      const auto is_it = [&](const auto& shard) { return fs::path(shard.first).filename() == name; };
      if (std::ranges::any_of(shards, is_it)) return entry.string();
    } catch (const InvalidArgument&) {
      continue;  // nobody has named it
    }
  }
  return file;
}

std::vector<std::string> contradictions(const std::string& file, const IndexEntry& entry,
                                        const std::set<std::string>& held) {
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    const std::string more = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
    lines.push_back(fmt::format("{}: {} '{}'{}", printable(entry.index), what, escaped(names[0]), more));
  };
  std::vector<std::string> lacking, unknown;
  std::ranges::set_difference(entry.tensors, held, std::back_inserter(lacking));
  std::ranges::set_difference(held, entry.tensors, std::back_inserter(unknown));
  add(lacking, fmt::format("weight_map says of {} what it lacks: tensor", printable(file)));
  add(unknown, fmt::format("weight_map does not name what {} holds: tensor", printable(file)));
  return lines;
}

}  // namespace halfscope
