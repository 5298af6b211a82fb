// Fuzzes the reader of files that grow: lines whole and in order, wherever the reading stops, and JSON in
// them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <halfscope/io/growing_file.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

namespace halfscope {
namespace {

/// The first `most` bytes of `text`, read as a file: what comes back is what was there.
void read_prefix(const MemoryFile& file, std::string_view text, std::uint64_t most) {
  const std::string_view prefix = text.substr(0, most);
  std::string lines;
  const FileExtent extent = read_lines(
      file.path(), [&](std::string_view line, std::size_t) { lines.append(line) += '\n'; }, most);
  FileExtent expected;
  expected.add(prefix);
  if (!(extent == expected) || lines != prefix.substr(0, prefix.rfind('\n') + 1)) std::abort();
}

}  // namespace
}  // namespace halfscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const MemoryFile file(bytes, size);
  for (const std::size_t most : {std::size_t{0}, size / 2, size, size + 1}) read_prefix(file, text, most);
  return fuzz_file(bytes, size, [&](const InputFile&) {
    read_lines(file.path(),
               [](std::string_view line, std::size_t) { static_cast<void>(parse_json(line, "line")); });
  });
}
