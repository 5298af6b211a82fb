// Summaries of the tensors of files, read in blocks by all threads; memory does not grow with the files.
#pragma once

#include <exception>
#include <functional>
#include <span>

#include <halfscope/io/tensor_file.hpp>
#include <halfscope/stats/tensor_summary.hpp>

namespace halfscope {

/// Takes what was found in tensor `index` of a file.
using SummarySink = std::function<void(std::size_t index, const TensorSummary& summary)>;
/// Hears how many more elements have been read.
using ElementProgress = std::function<void(std::int64_t elements)>;

/// Summaries the tensors `chosen`, ascending indices, for `format`, and hands each to `sink` in that order.
/// The summaries are the same for any number of threads. Throws InvalidArgument where the file turns out to
/// be damaged.
void summarise_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                       const SummarySink& sink, const ElementProgress& progress = {});

/// A file and the tensors of it that are asked for, by ascending index.
struct ChosenTensors {
  const TensorFile* file = nullptr;
  std::span<const std::size_t> tensors;
};

/// A tensor that has been gone over.
struct SummarisedTensor {
  std::size_t file = 0, index = 0;  ///< place of the file among the files, and of the tensor in it
  const TensorSummary* summary = nullptr;
  /// Finite f64 elements beyond FP32's largest number or below its smallest. They were read as those, so that
  /// the counts of a cast at scale 1 are right, and the scales that fit are bounds.
  std::int64_t beyond_fp32 = 0;
};

/// Hears of the files one after the other, in order.
struct FilesSink {
  std::function<void(const SummarisedTensor&)> tensor;
  /// `file` turned out to be damaged: no tensor of it follows.
  std::function<void(std::size_t file, const std::exception_ptr& error)> failed;
  std::function<void(std::size_t file, std::int64_t elements)> progress;  ///< may be empty
};

/// Summaries of many files, whose tensors the threads share: many small ones cost no more than a large one.
void summarise_files(std::span<const ChosenTensors> files, const FloatFormat& format, const FilesSink& sink);

}  // namespace halfscope
