// Fuzzes the reader of logs: whatever it finds is a run of ascending steps.
#include <cstdint>

#include "tests/fuzz/fuzz_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  SkipLogReader reader;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    reader.line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) reader.cut_line(text);
  check_reader(reader);
  return 0;
}
