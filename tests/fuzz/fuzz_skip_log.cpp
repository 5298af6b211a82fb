// Fuzzes the reader of logs: whatever it finds is a run of ascending steps, or one line that refuses the
// file.
#include <cstdint>

#include "tests/fuzz/fuzz_log.hpp"

namespace halfscope {
namespace {

void read_lines(SkipLogReader& reader, std::string_view text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    reader.line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) reader.cut_line(text);
}

void read(std::string_view text) {
  SkipLogReader reader;
  try {
    read_lines(reader, text);
  } catch (const InvalidArgument& error) {
    return check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  check_reader(reader);
}

}  // namespace
}  // namespace halfscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  halfscope::read({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
