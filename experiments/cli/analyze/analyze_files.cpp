// Goes over the files of `halfscope analyze`, many at a time.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/file_formats.hpp>
#include <halfscope/io/file_summary.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/analyze/analyze_paths.hpp"
#include "experiments/cli/analyze/analyze_rows.hpp"
#include "experiments/cli/analyze/checkpoint_config.hpp"
#include "experiments/cli/analyze/split_parts.hpp"
#include "experiments/run/status_line.hpp"

namespace halfscope {
namespace {

/// Open at once: enough for threads to share, few enough for any limit.
constexpr std::size_t files_at_a_time = 64;

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

/// "3 of 40 files, shard-3.safetensors: 12 million elements"
class Progress {
 public:
  explicit Progress(std::size_t files) : files_(files) {}
  void show(std::size_t file, const std::string& name, std::int64_t elements) {
    elements_ += elements;
    if (!line_.is_due()) return;
    std::string text = files_ == 1 ? name : fmt::format("{} of {} files, {}", file + 1, files_, name);
    if (elements_ >= 1'000'000) text += fmt::format(": {} million elements", elements_ / 1'000'000);
    line_.update(text);
  }
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  std::size_t files_;
  std::int64_t elements_ = 0;
};

class Reader {
 public:
  Reader(const AnalyzeRequest& request, Analysis& analysis, const ExpandedPaths& paths)
      : request_(request),
        analysis_(analysis),
        paths_(paths),
        parts_(paths.files, request.selection),
        rows_(request, analysis),
        progress_(paths.files.size()) {
    for (const std::string& problem : paths.problems) say(problem);
  }

  /// Reads `paths`, of which the first is file `first` of all.
  void read(std::span<const std::string> paths, std::size_t first) {
    std::vector<SelectedFile> files = open(paths);
    std::vector<ChosenTensors> chosen;
    for (const SelectedFile& file : files) chosen.push_back({file.file.get(), file.tensors});
    std::optional<std::size_t> current;
    const auto enter = [&](std::size_t file) {
      if (current == file) return;
      rows_.end();
      rows_.begin(files[file]);
      current = file;
    };
    const auto take = [&](const auto& found) {
      enter(found.file);
      rows_.take(found);
    };
    const auto failed = [&](std::size_t file, const std::exception_ptr& error) {
      enter(file);
      rows_.drop();
      files[file].is_damaged = true;
      fail(error);
    };
    const auto progress = [&](std::size_t file, std::int64_t elements) {
      progress_.show(first + file, files[file].name, elements);
    };
    if (request_.compared.formats.empty()) {
      summarise_files(chosen, request_.format, {take, failed, progress});
    } else {
      count_formats(chosen, request_.compared, {take, failed, progress});
    }
    rows_.end();
    for (const SelectedFile& file : files) {
      if (!file.is_damaged) list_skipped(file);
    }
  }

  void finish() {
    progress_.clear();
    rows_.finish();
    if (!selected_any_ && analysis_.status == done) throw InvalidArgument(why_nothing_);
  }

 private:
  std::vector<SelectedFile> open(std::span<const std::string> paths) {
    std::vector<SelectedFile> files;
    for (const std::string& path : paths) {
      try {
        SelectedFile file = select_tensors(path, request_.selection, parts_);
        if (!file.tensors.empty()) selected_any_ = true;
        if (why_nothing_.empty()) why_nothing_ = why_nothing_is_selected(file);
        check_against_index(path, file.held);
        say_all(file.file->problems());
        leave_out_codes(path, file);
        files.push_back(std::move(file));
      } catch (const InvalidArgument&) {
        fail(std::current_exception());
      }
    }
    return files;
  }

  static std::string why_nothing_is_selected(const SelectedFile& file) {
    const std::vector<SkippedTensor>& skipped = file.file->skipped();
    if (file.left_out > 0) {
      const std::string which =
          file.left_out == 1 ? "leave out its only tensor,"
                             : fmt::format("leave none of its {} tensors, the first is", file.left_out);
      return fmt::format("{}: --include and --exclude {} '{}'", file.name, which,
                         escaped(file.first_left_out));
    }
    if (skipped.empty()) return file.name + ": holds no tensor";
    return fmt::format("{}: holds no tensor of floating-point numbers; '{}' is skipped ({})", file.name,
                       escaped(skipped[0].name), skipped[0].reason);
  }

  /// Codes whose scales an index puts into a file that is not given are no weights.
  void leave_out_codes(const std::string& path, SelectedFile& file) {
    if (request_.selection.view == QuantizedView::payload) return;
    std::vector<std::string> lines;
    std::optional<std::map<std::string, std::string>> shards;
    std::erase_if(file.tensors, [&](std::size_t index) {
      const StoredTensor& tensor = file.file->tensors()[index];
      const bool is_coded = tensor.type == DType::f8_e4m3 || tensor.type == DType::f8_e5m2;
      if (!is_coded || file.file->has_blocks(index)) return false;
      if (!shards) shards = files_by_indices_beside(path);
      for (const char* const suffix : {"_scale_inv", "_scale"}) {
        const auto scales = shards->find(tensor.name + suffix);
        if (scales == shards->end()) continue;
        lines.push_back(fmt::format(
            "{}: tensor '{}' is not read: its scales '{}' are in {}; give that file too, or read the codes "
            "with --payload",
            file.name, escaped(tensor.name), escaped(scales->first), printable(scales->second)));
        return true;
      }
      return false;
    });
    say_all(lines);
  }

  void check_against_index(const std::string& path, const std::set<std::string>& held) {
    const auto entry = paths_.indexed.find(path);
    if (entry == paths_.indexed.end()) return;
    for (const std::string& line : contradictions(path, entry->second, held)) say(line);
  }

  /// The first of many lines of one kind, and how many there are besides.
  void say_all(const std::vector<std::string>& problems) {
    constexpr std::size_t shown = 3;
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) say(problems[i]);
    if (problems.size() > shown) say(fmt::format("{} more lines like these", problems.size() - shown));
  }

  void say(const std::string& problem) {
    progress_.clear();
    print_error(problem);
    analysis_.status = wrong_request;
  }

  void fail(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const InvalidArgument& problem) {
      say(problem.what());
    }
  }

  void list_skipped(const SelectedFile& file) {
    for (const SkippedTensor& skipped : file.file->skipped()) {
      if (request_.selection.takes(skipped.name))
        analysis_.skipped.push_back({skipped.name, file.name, skipped.reason});
    }
  }

  const AnalyzeRequest& request_;
  Analysis& analysis_;
  const ExpandedPaths& paths_;
  SplitParts parts_;
  Rows rows_;
  Progress progress_;
  bool selected_any_ = false;
  std::string why_nothing_;  // of the first file
};

}  // namespace

bool TensorSelection::takes(const std::string& tensor) const {
  return (include.empty() || matches_any(include, tensor)) && !matches_any(exclude, tensor);
}

SelectedFile select_tensors(const std::string& path, const TensorSelection& selection, SplitParts& parts) {
  SelectedFile selected{.name = printable(path)};
  const auto wanted = [&](std::string_view name) {
    if (selection.takes(std::string(name))) return true;
    if (selected.left_out++ == 0) selected.first_left_out = name;
    return false;
  };
  std::unique_ptr<TensorFile> file = open_tensor_file(path, selection.raw_type, wanted);
  selected.held = names_in(*file);
  selected.file = show_quantized(parts.complete(std::move(file), path), selected.name, selection.view,
                                 weight_block_beside(path));
  const std::vector<StoredTensor>& tensors = selected.file->tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (wanted(tensors[i].name)) selected.tensors.push_back(i);
  }
  return selected;
}

std::set<std::string> names_in(const TensorFile& file) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) names.insert(tensor.name);
  for (const SkippedTensor& skipped : file.skipped()) names.insert(skipped.name);
  return names;
}

void analyze_files(const AnalyzeRequest& request, Analysis& analysis) {
  const ExpandedPaths paths = expand_paths(request.files);
  analysis.files = paths.files.size();
  analysis.not_read = paths.not_read;
  Reader reader(request, analysis, paths);
  const std::span<const std::string> files = paths.files;
  for (std::size_t first = 0; first < files.size(); first += files_at_a_time)
    reader.read(files.subspan(first, std::min(files_at_a_time, files.size() - first)), first);
  reader.finish();
}

}  // namespace halfscope
