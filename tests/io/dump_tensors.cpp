// Prints a tensor file for foreign_files_test.py: dump_tensors FILE, one line of JSON per tensor or skipped
// member.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {
namespace {

void dump(const TensorFile& file) {
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& tensor = file.tensors()[i];
    std::vector<float> values(static_cast<std::size_t>(tensor.elements));
    file.read_row_major(i, values);
    std::string bits;
    for (const float x : values) bits += fmt::format("{:08x}", to_bits(x));
    fmt::print("{}\n", to_line({{"name", tensor.name},
                                {"type", name_of(tensor.type)},
                                {"shape", tensor.shape},
                                {"bits", bits}}));
  }
  for (const SkippedTensor& skipped : file.skipped()) {
    fmt::print("{}\n", to_line({{"name", skipped.name}, {"skipped", skipped.reason}}));
  }
}

}  // namespace
}  // namespace halfscope

int main(int count, char** words) {
  try {
    if (count != 2) throw halfscope::InvalidArgument("usage: dump_tensors FILE");
    halfscope::dump(*halfscope::open_tensor_file(words[1]));
  } catch (const halfscope::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
