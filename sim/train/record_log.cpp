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

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& folder, const std::string& name)
    : name_(name), path_(folder / (name + ".jsonl")) {}

void RecordFile::add(std::string_view lines) {
  waiting_ += lines;
  if (waiting_.size() >= most_waiting) flush();
}

void RecordFile::flush() {
  append_to_file(path_, waiting_);
  written_.add(waiting_);
  waiting_.clear();
}

void RecordFile::describe(SafetensorsFile& checkpoint) const {
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

void RecordFile::restore(const LineFunction& take) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(
        fmt::format("{}: {}; remove the run's folder and start again", printable(path_), why));
  };
  if (expected_bytes_ > 0) written_ = read_lines(path_, take, expected_bytes_);
  if (written_.bytes < expected_bytes_) refuse("it is shorter than its checkpoint says");
  if (expected_crc32_.value_or(written_.crc32) != written_.crc32)
    refuse("its bytes are not those that the run wrote");
  cut_file(path_, expected_bytes_);
}

void RecordLog::add(const RecordText& step) {
  histograms_.add(step.histograms);
  metrics_.add(step.metrics);
}

void RecordLog::flush() {
  histograms_.flush();
  metrics_.flush();
}

void RecordLog::describe(SafetensorsFile& checkpoint) const {
  metrics_.describe(checkpoint);
  histograms_.describe(checkpoint);
}

void RecordLog::expect(const SafetensorsFile& checkpoint) {
  metrics_.expect(checkpoint);
  histograms_.expect(checkpoint);
}

void RecordLog::restore(const LineFunction& take) {
  metrics_.restore(take);
  histograms_.restore([](std::string_view, std::size_t) {});
}

}  // namespace halfscope
