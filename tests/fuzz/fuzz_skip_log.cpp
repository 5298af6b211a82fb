// Fuzzes the reader of logs: whatever it finds is a run of ascending steps.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

void check(bool right) {
  if (!right) std::abort();
}

void check_log(const SkipLog& log) {
  std::int64_t last = -1, skipped = 0;
  check(!log.steps.empty());
  for (const LoggedStep& step : log.steps) {
    check(step.step > last);
    check(step.scale >= smallest_scale && step.scale <= largest_scale);
    check(step.low >= 0 && step.low <= step.high);
    check(!step.grad_norm || *step.grad_norm >= 0);
    last = step.step;
    skipped += step.skipped ? 1 : 0;
  }
  check(skipped == log.skipped && log.missing >= 0);
  check(log.unsure_steps >= 0 && log.unsure_steps <= skipped);
  check(log.unsure_scales >= 0 && log.unsure_scales <= skipped);
  check(log.unknown_steps >= 0 && log.uncounted >= 0 && log.uncounted <= skipped);
  check(!verdict_of(log).empty());
}

}  // namespace
}  // namespace halfscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  SkipLogReader reader;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  try {
    check_log(reader.finish());
  } catch (const InvalidArgument& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
