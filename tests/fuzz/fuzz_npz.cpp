// Fuzzes the reader of .npz archives.
#include <halfscope/io/npz/detail/npz_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  const NameFilter all = [](std::string_view) { return true; };
  return fuzz_file(bytes, size,
                   [&](InputFile file) { read_all_tensors(*open_npz(std::move(file), DType::bf16, all)); });
}
