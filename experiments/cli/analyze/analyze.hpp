// Findings of `halfscope analyze`: the request, and the reports about tensors and updates.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/io/file_updates.hpp>
#include <halfscope/io/tensor_file.hpp>
#include <halfscope/scaling/tensor_report.hpp>

namespace halfscope {

/// Which files are looked at, and which tensors of them.
struct TensorSelection {
  std::optional<DType> raw_type;
  std::vector<std::string> include, exclude;  ///< globs; no include is all

  [[nodiscard]] bool takes(const std::string& tensor) const;
};

struct AnalyzeRequest {
  std::vector<std::string> files;
  std::string weights, updates;  ///< empty, or both
  TensorSelection selection;
  FloatFormat format;
  AdvisorOptions advisor;
};

struct UpdateReport {
  std::string name;
  LostUpdates counts;
};

struct Analysis {
  FloatFormat format{};
  AdvisorOptions advisor{};
  std::vector<TensorReport> tensors{};
  std::vector<SkippedTensor> skipped{};
  std::vector<UpdateReport> updates{};
  Advice advice{};
};

/// A file and the tensors of it that are asked for.
struct SelectedFile {
  std::string name;
  std::unique_ptr<TensorFile> file;
  std::vector<std::size_t> tensors;  ///< ascending indices, at least one
};

/// Throws InvalidArgument where the file cannot be read or holds no tensor that `selection` takes.
[[nodiscard]] SelectedFile select_tensors(const std::string& path, const TensorSelection& selection);

/// Appends what is in the file at `path` to `analysis`, or nothing where it throws. `prefix` opens the names.
void analyze_file(const std::string& path, const std::string& prefix, const AnalyzeRequest& request,
                  Analysis& analysis);

/// Counts the updates that the weights do not feel, tensor by tensor. Throws InvalidArgument where the two
/// files do not hold the same tensors.
[[nodiscard]] std::vector<UpdateReport> analyze_updates(const AnalyzeRequest& request);

/// For the terminal, and as the contract of `analyze --json` has it.
[[nodiscard]] std::string analysis_text(const Analysis& analysis);
[[nodiscard]] std::string analysis_json(const Analysis& analysis);

/// "0.1 %", or "<0.01 %" for what is not zero but too small to print.
[[nodiscard]] std::string share_words(double share);

}  // namespace halfscope
