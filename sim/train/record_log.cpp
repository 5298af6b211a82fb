// Records are appended, and cut back to a checkpoint's extent.
#include "sim/train/record_log.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/train/checkpoint_metadata.hpp"

namespace halfscope {
namespace {

/// Bytes that wait before they are appended without a checkpoint: this much memory, and no more, is theirs.
constexpr std::size_t most_waiting = 1 << 20;

void ignore_line(std::string_view /*line*/, std::size_t /*number*/) {}

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& folder, const std::string& name)
    : name_(name), path_(folder / (name + ".jsonl")) {}

void RecordFile::add(std::string_view lines) {
  waiting_ += lines;
  if (waiting_.size() >= most_waiting) flush();
}

void RecordFile::flush() {
  check_length();
  append_to_file(path_, waiting_);
  written_.add(waiting_);
  waiting_.clear();
}

void RecordFile::check_length() const {
  const std::uint64_t found = length();
  if (found == written_.bytes) return;
  throw RuntimeFailure(
      fmt::format("{}: it has {} bytes, and the run has written {}: keep other programs away from it, and {}",
                  printable(path_), found, written_.bytes,
                  found < expected_bytes_ ? "remove the run's folder and start again"
                                          : "add --resume to go on from the last checkpoint"));
}

void RecordFile::describe(SafetensorsFile& checkpoint) {
  expected_bytes_ = written_.bytes;
  expected_crc32_ = written_.crc32;
  checkpoint.metadata[key("bytes")] = fmt::format("{}", written_.bytes);
  checkpoint.metadata[key("crc32")] = fmt::format("{}", written_.crc32);
}

void RecordFile::expect(const SafetensorsFile& checkpoint) {
  constexpr double largest_crc32 = 0xffffffffu;
  expected_bytes_ = static_cast<std::uint64_t>(metadata_count(checkpoint, key("bytes")));
  if (checkpoint.metadata.contains(key("crc32"))) {
    expected_crc32_ =
        static_cast<std::uint32_t>(metadata_count(checkpoint, key("crc32"), {0, largest_crc32}));
  }
}

FileExtent RecordFile::read_expected(const LineFunction& take) const {
  FileExtent read;
  if (expected_bytes_ > 0) read = read_lines(path_, take, expected_bytes_);
  if (read.bytes < expected_bytes_) refuse("it is shorter than its checkpoint says");
  if (expected_crc32_.value_or(read.crc32) != read.crc32)
    refuse("its bytes are not those that the run wrote");
  return read;
}

std::uint64_t RecordFile::length() const {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, error);
  return error ? 0 : bytes;
}

void RecordFile::refuse(std::string_view why) const {
  throw InvalidArgument(fmt::format("{}: {}", printable(path_), why));
}

void RecordFile::restore(const LineFunction& take) {
  written_ = read_expected(take);
  cut_file(path_, expected_bytes_);
}

void RecordFile::check() const {
  static_cast<void>(read_expected(ignore_line));
  if (length() > expected_bytes_) refuse("it is longer than its checkpoint says");
}

void RecordLog::add(const RecordText& step) {
  histograms_.add(step.histograms);
  metrics_.add(step.metrics);
}

void RecordLog::flush() {
  histograms_.flush();
  metrics_.flush();
}

void RecordLog::describe(SafetensorsFile& checkpoint) {
  metrics_.describe(checkpoint);
  histograms_.describe(checkpoint);
}

bool RecordLog::is_described_in(const SafetensorsFile& checkpoint) const {
  return metrics_.is_described_in(checkpoint);
}

void RecordLog::expect(const SafetensorsFile& checkpoint) {
  metrics_.expect(checkpoint);
  histograms_.expect(checkpoint);
}

void RecordLog::restore(const LineFunction& take) {
  metrics_.restore(take);
  histograms_.restore(ignore_line);
}

void RecordLog::check() const {
  metrics_.check();
  histograms_.check();
}

}  // namespace halfscope
