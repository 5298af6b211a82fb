// Tensors of files that a command is given: which of them are asked for, and a walk over them, many files at
// a time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/io/checkpoint_files.hpp>
#include <halfscope/passes/file_summary.hpp>

#include "experiments/cli/exit_status.hpp"

namespace halfscope {

/// Which tensors of the files are looked at.
struct TensorSelection {
  std::optional<DType> raw_type;
  std::vector<std::string> include, exclude;  ///< globs; no include is all
  QuantizedView view = QuantizedView::values;

  [[nodiscard]] bool takes(const std::string& tensor) const;
};

/// Files, and the tensors of them that are asked for.
struct TensorFiles {
  std::vector<std::string> paths;  ///< see expand_paths
  TensorSelection selection;
};

/// A file and the tensors of it that are asked for.
struct SelectedFile {
  std::string name{};  ///< for messages
  std::unique_ptr<QuantizedFile> file{};
  std::vector<std::string> contradictions{};  ///< see CheckpointFile
  std::vector<std::size_t> tensors{};         ///< ascending indices
  std::size_t left_out = 0;                   ///< tensors that are not asked for
  std::string first_left_out{};
  bool is_damaged = false;  ///< as turned out while it was read
};

/// Opens one of `files`. Throws InvalidArgument where it cannot be read.
[[nodiscard]] SelectedFile select_tensors(const std::string& path, const TensorSelection& selection,
                                          CheckpointFiles& files);

struct SkippedReport {
  std::string name, file, reason;
};

/// Totals of a walk over files, beside their tensors.
struct FilesRead {
  std::size_t files = 0;  ///< that were given, with those in folders
  std::vector<SkippedReport> skipped{};
  std::vector<FileNotRead> not_read{};  ///< in folders that were given
  std::size_t unread = 0;               ///< quantized tensors that are not read
  ExitStatus status = done;  ///< wrong_request where a file could not be read; its line is on stderr
};

/// Calls back while files are counted, one after the other.
struct CountEvents {
  std::function<void(std::size_t file)> enter;  ///< before each tensor that is taken
  std::function<void(std::size_t file, const std::exception_ptr& error)> failed;
  std::function<void(std::size_t file, std::int64_t elements)> progress;
};

/// Takes the tensors of a walk, file by file: of a file that turns out to be damaged none is kept.
class TensorRows {
 public:
  TensorRows() = default;
  TensorRows(const TensorRows&) = delete;
  TensorRows& operator=(const TensorRows&) = delete;
  virtual ~TensorRows() = default;

  /// Goes over the tensors of `files` and takes each after `events.enter`.
  virtual void count(std::span<const ChosenTensors> files, const CountEvents& events) = 0;
  /// The tensors that follow are those of `file`.
  virtual void begin(const SelectedFile& file) = 0;
  /// All of the file has been read.
  virtual void end() = 0;
  /// The file is damaged.
  virtual void drop() = 0;
};

/// Goes over the files. A file that is wrong is one line on stderr, and the others go on. Throws
/// InvalidArgument where no file holds a tensor that is asked for.
void read_files(const TensorFiles& request, FilesRead& read, TensorRows& rows);

/// Lets as many files be open as the system allows: shards of weights and of updates are open at the same
/// time.
void allow_many_files();

}  // namespace halfscope
