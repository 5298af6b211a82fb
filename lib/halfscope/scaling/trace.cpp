// Reads traces line by line.
#include <halfscope/scaling/trace.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/scaling/detail/log_members.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

constexpr const char* how_to_record =
    "record it: halfscope run EXPERIMENT --set record_gradients=max_abs, or =histogram";

const Json& member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) {
    throw InvalidArgument(fmt::format("it lacks '{}'", key));
  }
  return *found;
}

const Json& gradients_of(const Json& record) {
  const auto found = record.find("gradients");
  if (record.contains("blocks"))
    throw InvalidArgument(
        "it was watched for a block format, whose blocks have scales of their own; watch it for fp16");
  if (found == record.end())
    throw InvalidArgument(fmt::format(
        "it lacks 'gradients'; {}; a log of another trainer is read with --columns loss_scale=scale",
        how_to_record));
  return *found;
}

double number_within(const Json& object, const char* key, double low) {
  const Json& value = member(object, key);
  if (!value.is_number() || !(value.get<double>() >= low) || std::isinf(value.get<double>())) {
    throw InvalidArgument(
        fmt::format("{} = {}: expected a number of {:.4g} or more", key, to_line(value), low));
  }
  return value.get<double>();
}

std::int64_t step_number(const Json& record) {
  const Json& value = member(record, "step");
  if (!is_integer(value) || value.get<std::int64_t>() < 0) {
    throw InvalidArgument(fmt::format("step = {}: expected an integer of 0 or more", to_line(value)));
  }
  return value.get<std::int64_t>();
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// Whether a line of JSON has a key, given with its quotes, in its outermost object.
bool has_own_key(std::string_view line, std::string_view key) {
  int depth = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '{') ++depth;
    if (line[i] == '}') --depth;
    if (line[i] != '"') continue;
    if (depth == 1 && line.substr(i).starts_with(key)) return true;
    for (++i; i < line.size() && line[i] != '"'; ++i)
      if (line[i] == '\\') ++i;
  }
  return false;
}

/// Whether a line is meant as a step, right or wrong.
bool looks_like_step(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with('{')) return false;
  const auto has = [&](std::string_view key) { return line.find(key) != std::string_view::npos; };
  if (has(history_key)) return false;
  if (has_own_key(line, "\"gradients\"") || has_own_key(line, "\"scale\"")) return true;
  const bool is_log =
      has("loss_scale") || has("grad_scale") || has("grad_norm") || has("\"loss\"") || has("\"scale\"");
  return has("\"step\"") && !is_log;
}

/// Whether TensorBoard wrote the file: its first record says so.
bool is_event_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(64, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.find("brain.Event:2") != std::string::npos;
}

/// Calls `read`, whose errors then name the file.
template <typename Read>
auto log_in(const std::filesystem::path& path, Read&& read) {
  try {
    return read();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
}

/// The steps of a file, handed over line by line.
class TraceLines {
 public:
  TraceLines(const std::filesystem::path& path, const std::function<void(const TraceStep&)>& take)
      : path_(path), take_(take) {}

  void line(std::size_t number, std::string_view content) {
    const std::string where = fmt::format("{}: line {}", printable(path_), number);
    const Json record = parse_json(content, where);
    try {
      const TraceStep step = trace_step(record);
      if (step.step <= last_) {
        throw InvalidArgument(
            fmt::format("step {} after step {}; a trace is one run, its steps ascend", step.step, last_));
      }
      last_ = step.step;
      take_(step);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", where, error.what()));
    }
  }

 private:
  const std::filesystem::path& path_;
  const std::function<void(const TraceStep&)>& take_;
  std::int64_t last_ = -1;
};

}  // namespace

TraceStep trace_step(const Json& record) {
  if (!record.is_object()) {
    throw InvalidArgument(
        "expected an object with step, scale and gradients, as a line of a run's metrics.jsonl");
  }
  TraceStep step{.step = step_number(record), .scale = number_within(record, "scale", smallest_scale)};
  const Json& gradients = gradients_of(record);
  const Json& finite = member(gradients, "finite");
  if (!finite.is_boolean()) throw InvalidArgument("finite: expected true or false");
  step.finite = finite.get<bool>();
  if (step.finite) step.max_abs = number_within(gradients, "max_abs", 0);
  const auto histogram = gradients.find("histogram");
  if (histogram != gradients.end() && !histogram->is_null()) {
    step.histogram = std::make_shared<const ExponentHistogram>(histogram_of(*histogram));
    if (step.histogram->format() != fp16) {
      throw InvalidArgument(fmt::format("the histogram is for {}; loss scalers are replayed for fp16",
                                        to_string(step.histogram->format())));
    }
  }
  return step;
}

void read_trace(const std::filesystem::path& path, const std::function<void(const TraceStep&)>& take) {
  TraceLines trace(path, take);
  read_lines(path, [&](std::size_t number, std::string_view content) {
    if (!is_blank(content)) trace.line(number, content);
  });
}

std::optional<SkipLog> read_trace_or_log(const std::filesystem::path& path,
                                         const std::function<void(const TraceStep&)>& take,
                                         const LogColumns& columns) {
  TraceLines trace(path, take);
  SkipLogReader log(columns);
  if (is_event_file(path)) {
    return log_in(path, [&] {
      log.event_file(read_file(path), columns);
      return log.finish();
    });
  }
  std::optional<bool> is_trace;
  if (columns.is_given()) is_trace = false;
  const auto take_line = [&](std::size_t number, std::string_view content, LineEnd end) {
    if (!is_trace && !is_blank(content)) is_trace = looks_like_step(content);
    if (!is_trace.value_or(false))
      return log_in(path, [&] { return end == LineEnd::whole ? log.line(content) : log.cut_line(content); });
    if (!is_blank(content)) trace.line(number, content);
  };
  read_lines(
      path, [&](std::size_t number, std::string_view content) { take_line(number, content, LineEnd::whole); },
      [&](std::size_t number, std::string_view content) { take_line(number, content, LineEnd::cut); });
  if (is_trace.value_or(false)) return std::nullopt;
  return log_in(path, [&] { return log.finish(); });
}

}  // namespace halfscope
