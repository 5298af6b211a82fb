// Fuzzes the reader of event files. Messages get right checksums, behind which a random byte would never
// come.
#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_log.hpp"
#include "tests/support/event_file.hpp"

namespace halfscope {
namespace {

/// Messages of the input, each with a byte of its length in front.
std::string event_file_of(std::string_view input) {
  std::string file = event_file_head();
  while (!input.empty()) {
    const auto size = static_cast<std::size_t>(static_cast<unsigned char>(input.front()));
    input.remove_prefix(1);
    const std::string_view message = input.substr(0, size);
    file += event_record(message);
    input.remove_prefix(message.size());
  }
  return file;
}

void read(const std::string& file) {
  SkipLogReader reader;
  try {
    reader.event_file(file, {});
  } catch (const InvalidArgument& error) {
    return check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  check_reader(reader);
}

}  // namespace
}  // namespace halfscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  read(std::string(input));
  const std::string file = event_file_of(input);
  read(file);
  read(file.substr(0, file.size() - file.size() / 7));
  return 0;
}
