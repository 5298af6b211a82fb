// Findings of `halfscope analyze`: the request, and the reports about tensors and updates.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/io/checkpoint_files.hpp>
#include <halfscope/io/file_comparison.hpp>
#include <halfscope/io/file_formats.hpp>
#include <halfscope/io/file_updates.hpp>
#include <halfscope/scaling/averaging.hpp>
#include <halfscope/scaling/tensor_report.hpp>
#include <halfscope/stats/format_comparison.hpp>

#include "experiments/cli/analyze/tensor_groups.hpp"
#include "experiments/cli/exit_status.hpp"

namespace halfscope {

/// Which tensors of the files are looked at.
struct TensorSelection {
  std::optional<DType> raw_type;
  std::vector<std::string> include, exclude;  ///< globs; no include is all
  QuantizedView view = QuantizedView::values;

  [[nodiscard]] bool takes(const std::string& tensor) const;
};

struct AnalyzeRequest {
  std::vector<std::string> files;             ///< see expand_paths
  std::vector<std::string> weights, updates;  ///< empty, or both
  std::vector<std::string> against;           ///< files of reference tensors
  TensorSelection selection;
  TensorGroups groups;
  FloatFormat format;
  FormatRequest compared{};  ///< formats to hold against each other; without them `format` is looked at
  FormatRequest counted{};   ///< the compared formats; for a page also those of other scale rules after them
  ErrorLimit max_error{"--max-error 5% (default)", 0.05};
  AdvisorOptions advisor;
  std::optional<Averaging> averaging{};  ///< over ranks, which takes its part of the windows
  std::string page;                      ///< a path to write the explorer to; empty: none
};

/// A tensor, or several that were added up.
struct AnalyzedTensor {
  std::string name;  ///< the tensor's or the group's
  std::string file;  ///< its place, for people; empty for a group
  std::int64_t tensors = 1;
  std::int64_t beyond_fp32 = 0;  ///< see SummarisedTensor
  TensorReport report;           ///< its name is the one that is printed
  std::optional<ReferenceComparison> reference;
  /// Where the request has a page. Most files have neither these nor blocks, and hundreds of thousands of
  /// tensors.
  std::unique_ptr<BinadeTotals> counts{};
  std::unique_ptr<BlockFindings> blocks{};  ///< blocks of a tensor that was dequantized
  MatrixShape matrix{};                     ///< along the axis of the compared formats
  bool is_vector = false;                   ///< has one axis
  std::vector<FormatCounts> formats{};      ///< counts of each compared format
  std::vector<FormatCounts> counted{};      ///< counts of each counted format, where there is a page
};

struct SkippedReport {
  std::string name, file, reason;
};

struct UpdateReport {
  std::string name;
  LostUpdates counts;
};

struct Analysis {
  FloatFormat format{};
  FormatRequest compared{};
  ErrorLimit max_error{};
  AdvisorOptions advisor{};
  std::optional<Averaging> averaging{};  ///< that the windows are after
  std::size_t files = 0;                 ///< that were given, with those in folders
  std::vector<AnalyzedTensor> tensors{};
  std::vector<SkippedReport> skipped{};
  std::vector<FileNotRead> not_read{};  ///< in folders that were given
  std::vector<UpdateReport> updates{};
  bool is_quantized = false;  ///< a tensor is quantized: no loss scale is advised on
  std::size_t unread = 0;     ///< quantized tensors that are not read
  WeightSigns signs{};        ///< whether the tensors are weights
  Advice advice{};
  ExitStatus status = done;  ///< wrong_request where a file could not be read; its line is on stderr

  /// Loss scales mean something for gradients alone.
  [[nodiscard]] bool has_windows() const { return !is_quantized && !signs.reason(); }
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

/// Appends what is in the request's files. A file that is wrong is one line on stderr, and the others go on.
/// Throws InvalidArgument where no file holds a tensor that is asked for.
void analyze_files(const AnalyzeRequest& request, Analysis& analysis);

/// Counts the updates that the weights do not feel, tensor by tensor. Throws InvalidArgument where the files
/// of the two do not hold the same tensors.
[[nodiscard]] std::vector<UpdateReport> analyze_updates(const AnalyzeRequest& request);

/// How tensors of several files are told apart.
enum class Labels : std::uint8_t {
  with_file,  ///< "FILE:NAME" as soon as there are two files
  shortest,   ///< the name alone where no other file has it; escaped for a terminal
};
/// Gives every tensor the name that is printed, in reports and in the advice about them.
void label_tensors(Analysis& analysis, Labels labels);

}  // namespace halfscope
