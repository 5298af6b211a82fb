// Joins observations, and writes them as bytes.
#include "sim/train/observation_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/trackers.hpp>

#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

/// Appends values and texts, each text with its length.
class ByteWriter {
 public:
  template <typename Value>
  void value(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(std::string_view text) {
    value(text.size());
    bytes_ += text;
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename Value>
  [[nodiscard]] Value value() {
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string text() { return std::string(take(value<std::size_t>())); }
  /// A list whose items `read` reads.
  template <typename Item, typename Read>
  void list(std::vector<Item>& items, const Read& read) {
    const auto count = value<std::size_t>();
    for (std::size_t i = 0; i < count; ++i) items.push_back(read());
  }

 private:
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw RuntimeFailure("observations of another process end early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
};

void write(ByteWriter& to, const TraceRecord& record) {
  to.text(record.tensor);
  to.text(record.what);
  to.value(record.elements);
  to.value(record.nonfinite);
  to.value(record.max_abs);
}

TraceRecord read_trace(ByteReader& from) {
  TraceRecord record;
  record.tensor = from.text();
  record.what = from.text();
  record.elements = from.value<std::int64_t>();
  record.nonfinite = from.value<std::int64_t>();
  record.max_abs = from.value<float>();
  return record;
}

void merge_tensors(std::vector<TensorCounters>& all, const std::vector<TensorCounters>& part) {
  for (const TensorCounters& tensor : part) {
    const auto seen = std::ranges::find_if(all, [&](const TensorCounters& counters) {
      return counters.tensor == tensor.tensor && counters.role == tensor.role;
    });
    if (seen == all.end()) {
      all.push_back(tensor);
    } else {
      seen->elements += tensor.elements;
      merge(seen->counters, tensor.counters);
    }
  }
}

void merge_histograms(std::vector<HistogramRecord>& all, const std::vector<HistogramRecord>& part) {
  for (const HistogramRecord& record : part) {
    const auto seen = std::ranges::find_if(all, [&](const HistogramRecord& histogram) {
      return histogram.tensor == record.tensor && histogram.what == record.what;
    });
    if (seen == all.end()) {
      all.push_back(record);
    } else {
      seen->histogram.merge(record.histogram);
    }
  }
}

void merge_operands(std::vector<OperandCounters>& all, const std::vector<OperandCounters>& part) {
  for (const OperandCounters& operand : part) {
    const auto seen = std::ranges::find_if(all, [&](const OperandCounters& counters) {
      return counters.layer == operand.layer && counters.place == operand.place;
    });
    if (seen == all.end()) {
      all.push_back(operand);
    } else {
      seen->merge(operand);
    }
  }
}

}  // namespace

void merge_observations(StepObservations& all, const StepObservations& part) {
  merge_tensors(all.tensors, part.tensors);
  merge_histograms(all.histograms, part.histograms);
  merge_operands(all.operands, part.operands);
  all.reductions.insert(all.reductions.end(), part.reductions.begin(), part.reductions.end());
  if (all.first_overflow) return;
  all.trace.insert(all.trace.end(), part.trace.begin(), part.trace.end());
  if (all.trace.size() > trace_length)
    all.trace.erase(all.trace.begin(), all.trace.end() - static_cast<std::ptrdiff_t>(trace_length));
  all.first_overflow = part.first_overflow;
}

std::string to_bytes(const StepObservations& observations) {
  ByteWriter to;
  to.value(observations.tensors.size());
  for (const TensorCounters& tensor : observations.tensors) {
    to.text(tensor.tensor);
    to.value(tensor.role);
    to.value(tensor.scale);
    to.value(tensor.elements);
    to.value(tensor.counters);
  }
  to.value(observations.reductions.size());
  for (const ReductionRecord& record : observations.reductions) {
    to.text(record.tensor);
    to.value(record.counters);
  }
  to.value(observations.operands.size());
  for (const OperandCounters& operand : observations.operands) {
    to.text(operand.layer);
    to.value(operand.place);
    to.value(operand.scales);
    to.value(operand.magnitude);
    to.value(operand.counts);
  }
  to.value(observations.histograms.size());
  for (const HistogramRecord& record : observations.histograms) {
    to.text(record.tensor);
    to.text(record.what);
    to.value(record.scale);
    to.value(record.histogram);
  }
  to.value(observations.trace.size());
  for (const TraceRecord& record : observations.trace) write(to, record);
  to.value(observations.first_overflow.has_value());
  if (observations.first_overflow) {
    to.value(observations.first_overflow->pass);
    to.value(observations.first_overflow->cause);
    write(to, observations.first_overflow->source);
  }
  return to.take();
}

StepObservations observations_from(std::string_view bytes) {
  ByteReader from(bytes);
  StepObservations all;
  from.list(all.tensors, [&] {
    TensorCounters tensor{.tensor = from.text(), .role = from.value<Role>(), .scale = from.value<double>()};
    tensor.elements = from.value<std::int64_t>();
    tensor.counters = from.value<CastCounters>();
    return tensor;
  });
  from.list(all.reductions, [&] {
    ReductionRecord record{.tensor = from.text(), .counters = {}};
    record.counters = from.value<ReductionCounters>();
    return record;
  });
  from.list(all.operands, [&] {
    OperandCounters operand{.layer = from.text(), .place = from.value<OperandPlace>()};
    operand.scales = from.value<ScaleFormat>();
    operand.magnitude = from.value<OperandMagnitude>();
    operand.counts = from.value<BlockCounts>();
    return operand;
  });
  from.list(all.histograms, [&] {
    HistogramRecord record{.tensor = from.text(), .what = from.text(), .histogram = {}};
    record.scale = from.value<double>();
    record.histogram = from.value<ExponentHistogram>();
    return record;
  });
  from.list(all.trace, [&] { return read_trace(from); });
  if (from.value<bool>()) {
    all.first_overflow.emplace();
    all.first_overflow->pass = from.value<TrainingPass>();
    all.first_overflow->cause = from.value<OverflowCause>();
    all.first_overflow->source = read_trace(from);
  }
  return all;
}

void gather_observations(StepObservations& own) {
  if (process_count() == 1) return;
  const std::vector<std::string> all = gather(process_index() == 0 ? std::string{} : to_bytes(own));
  if (process_index() > 0) {
    own = {};
    return;
  }
  for (std::size_t process = 1; process < all.size(); ++process)
    merge_observations(own, observations_from(all[process]));
}

void sum_histograms(ExponentHistogram& own) {
  if (process_count() == 1) return;
  ByteWriter to;
  to.value(own);
  ExponentHistogram sum(own.format());
  for (const std::string& bytes : gather(to.take())) sum.merge(ByteReader(bytes).value<ExponentHistogram>());
  own = sum;
}

}  // namespace halfscope
