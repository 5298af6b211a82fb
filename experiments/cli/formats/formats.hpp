// Findings of `halfscope formats`: the request, and the counts of each tensor in each format.
#pragma once

#include <string>
#include <vector>

#include <halfscope/passes/file_formats.hpp>
#include <halfscope/stats/format_comparison.hpp>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

struct FormatsRequest {
  TensorFiles input;
  FormatRequest compared;  ///< formats to hold against each other
  FormatRequest counted;   ///< the compared formats; for a page also those of other scale rules after them
  ErrorLimit max_error{"--max-error 5% (default)", 0.05};
  std::string page;  ///< a path to write the explorer to; empty: none
};

struct TensorInFormats {
  std::string name;                   ///< the tensor's in its file
  std::string file;                   ///< its place, for people
  std::string label{};                ///< its name as it is printed
  MatrixShape matrix{};               ///< along the axis of the formats
  bool is_vector = false;             ///< has one axis
  std::vector<FormatCounts> formats;  ///< counts of each compared format
  std::vector<FormatCounts> counted;  ///< counts of each counted format, where there is a page
};

struct FormatsFound {
  FormatRequest compared;
  ErrorLimit max_error;
  FilesRead read{};
  std::vector<TensorInFormats> tensors{};
};

/// Counts the tensors of the request's files, with their names as they stand in the files. A file that is
/// wrong is one line on stderr, and the others go on. Throws InvalidArgument where no file holds a tensor
/// that is asked for.
[[nodiscard]] FormatsFound count_files(const FormatsRequest& request);

/// Writes the explorer of the counted formats to the request's page. Throws RuntimeFailure where that fails.
void write_formats_page(const FormatsRequest& request, const FormatsFound& found);

}  // namespace halfscope
