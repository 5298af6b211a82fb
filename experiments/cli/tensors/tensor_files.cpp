// Opens files in groups, hands their tensors on, and says what is wrong with them.
#include "experiments/cli/tensors/tensor_files.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/resource.h>

#include <algorithm>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>

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
  Reader(const TensorSelection& selection, FilesRead& read, CheckpointFiles& files, TensorRows& rows)
      : selection_(selection),
        read_(read),
        files_(files),
        rows_(rows),
        progress_(files.paths().files.size()) {
    for (const std::string& problem : files.paths().problems) say(problem);
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
    const auto failed = [&](std::size_t file, const std::exception_ptr& error) {
      enter(file);
      rows_.drop();
      files[file].is_damaged = true;
      fail(error);
    };
    const auto progress = [&](std::size_t file, std::int64_t elements) {
      progress_.show(first + file, files[file].name, elements);
    };
    rows_.count(chosen, {enter, failed, progress});
    rows_.end();
    for (const SelectedFile& file : files) {
      if (!file.is_damaged) list_skipped(file);
    }
  }

  void finish() {
    progress_.clear();
    if (!selected_any_ && read_.status == done) throw InvalidArgument(why_nothing_);
  }

 private:
  std::vector<SelectedFile> open(std::span<const std::string> paths) {
    std::vector<SelectedFile> files;
    for (const std::string& path : paths) {
      try {
        SelectedFile file = select_tensors(path, selection_, files_);
        if (!file.tensors.empty()) selected_any_ = true;
        if (why_nothing_.empty()) why_nothing_ = why_nothing_is_selected(file);
        say_all(file.contradictions);
        say_all(file.file->problems());
        count_unread(*file.file);
        files.push_back(std::move(file));
      } catch (const InvalidArgument&) {
        fail(std::current_exception());
      }
    }
    return files;
  }

  void count_unread(const QuantizedFile& file) {
    for (const std::string& name : file.unread())
      if (selection_.takes(name)) ++read_.unread;
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

  /// The first of many lines of one kind, and how many there are besides.
  void say_all(const std::vector<std::string>& problems) {
    constexpr std::size_t shown = 3;
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) say(problems[i]);
    if (problems.size() > shown) say(fmt::format("{} more lines like these", problems.size() - shown));
  }

  void say(const std::string& problem) {
    progress_.clear();
    print_error(problem);
    read_.status = wrong_request;
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
      if (selection_.takes(skipped.name)) read_.skipped.push_back({skipped.name, file.name, skipped.reason});
    }
  }

  const TensorSelection& selection_;
  FilesRead& read_;
  CheckpointFiles& files_;
  TensorRows& rows_;
  Progress progress_;
  bool selected_any_ = false;
  std::string why_nothing_;  // the reason for the first file
};

}  // namespace

bool TensorSelection::takes(const std::string& tensor) const {
  return (include.empty() || matches_any(include, tensor)) && !matches_any(exclude, tensor);
}

SelectedFile select_tensors(const std::string& path, const TensorSelection& selection,
                            CheckpointFiles& files) {
  SelectedFile selected{.name = printable(path)};
  const auto wanted = [&](std::string_view name) {
    if (selection.takes(std::string(name))) return true;
    if (selected.left_out++ == 0) selected.first_left_out = name;
    return false;
  };
  CheckpointFile opened = files.open(path, wanted);
  selected.file = std::move(opened.file);
  selected.contradictions = std::move(opened.contradictions);
  const std::vector<StoredTensor>& tensors = selected.file->tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (wanted(tensors[i].name)) selected.tensors.push_back(i);
  }
  return selected;
}

void read_files(const TensorFiles& request, FilesRead& read, TensorRows& rows) {
  CheckpointFiles checkpoint(expand_paths(request.paths), request.selection.raw_type, request.selection.view);
  const std::span<const std::string> files = checkpoint.paths().files;
  read.files = files.size();
  read.not_read = checkpoint.paths().not_read;
  Reader reader(request.selection, read, checkpoint, rows);
  for (std::size_t first = 0; first < files.size(); first += files_at_a_time)
    reader.read(files.subspan(first, std::min(files_at_a_time, files.size() - first)), first);
  reader.finish();
}

void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace halfscope
