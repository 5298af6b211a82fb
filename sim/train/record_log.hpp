// The records of a run on the disk: files that grow with the steps.
#pragma once

#include <filesystem>
#include <optional>

#include <halfscope/io/growing_file.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/train/records.hpp"

namespace halfscope {

/// A file of records, and those that wait to be appended to it.
class RecordFile {
 public:
  RecordFile(const std::filesystem::path& folder, const std::string& name);

  /// Takes the lines of a step. Many lines are appended at once; few wait for `flush`, so that a run of small
  /// steps does not wait for the disk in each of them.
  void add(std::string_view lines);
  /// Appends what waits, and waits for the disk. Throws RuntimeFailure, also where another has changed the
  /// file's length.
  void flush();

  /// Notes the file's extent in a checkpoint's metadata, once all is flushed.
  void describe(SafetensorsFile& checkpoint);
  [[nodiscard]] bool is_described_in(const SafetensorsFile& checkpoint) const {
    return checkpoint.metadata.contains(key("bytes"));
  }
  /// Takes note of the extent that `checkpoint` has. Throws InvalidArgument where it has none that can be.
  void expect(const SafetensorsFile& checkpoint);
  /// Continues from that extent, or from none: hands over the lines within it and cuts off later ones. Throws
  /// InvalidArgument where the file is shorter than that or has other bytes.
  void restore(const LineFunction& take);
  /// Throws InvalidArgument where the whole file has not that extent.
  void check() const;

 private:
  [[nodiscard]] std::string key(const char* what) const { return name_ + "_" + what; }
  /// Throws RuntimeFailure, with the way on, where the file is not as long as this left it.
  void check_length() const;
  /// Length of the file now, bytes; 0 where there is none.
  [[nodiscard]] std::uint64_t length() const;
  /// The extent that a checkpoint notes, whose lines `take` receives. Throws InvalidArgument.
  FileExtent read_expected(const LineFunction& take) const;
  [[noreturn]] void refuse(std::string_view why) const;

  std::string name_;  ///< without ".jsonl"
  std::filesystem::path path_;
  std::uint64_t expected_bytes_ = 0;               ///< length of the last checkpoint
  std::optional<std::uint32_t> expected_crc32_{};  ///< checkpoints of 0.1.0 have none
  FileExtent written_{};
  std::string waiting_{};
};

/// metrics.jsonl and histograms.jsonl. Memory does not grow with the steps.
class RecordLog {
 public:
  explicit RecordLog(const std::filesystem::path& folder)
      : metrics_(folder, "metrics"), histograms_(folder, "histograms") {}

  void add(const RecordText& step);
  void flush();
  void describe(SafetensorsFile& checkpoint);
  [[nodiscard]] bool is_described_in(const SafetensorsFile& checkpoint) const;
  void expect(const SafetensorsFile& checkpoint);
  /// `take` receives the lines of metrics.jsonl. See RecordFile::restore.
  void restore(const LineFunction& take);
  void check() const;

 private:
  RecordFile metrics_, histograms_;
};

}  // namespace halfscope
