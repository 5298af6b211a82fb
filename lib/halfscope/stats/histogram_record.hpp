// Record of an exponent histogram: its members by key, for JSON, for Python, for whatever else holds them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// Takes the members of a record, each by its key, in the order in which they are written.
struct RecordWriter {
  std::function<void(const char* key, std::int64_t value)> integer;
  std::function<void(const char* key, std::span<const std::int64_t> values)> list;
};

/// first_exponent; the counters of the binades from the first to the last that hold anything; zeros,
/// negative_zeros, infinities, nans. Neither the largest magnitude nor the format is in a record.
void write_record(const ExponentHistogram& histogram, const RecordWriter& writer);

/// Finds members of a record by their keys. Each throws InvalidArgument where there is none, or one of
/// another kind.
struct RecordReader {
  std::function<std::int64_t(const char* key)> integer;
  std::function<std::vector<std::int64_t>(const char* key)> list;
};

/// The counters in a record, max_abs 0 among them. Throws InvalidArgument where the lists do not fit together
/// or count less than nothing.
[[nodiscard]] HistogramCounts read_record(const RecordReader& reader);

}  // namespace halfscope
