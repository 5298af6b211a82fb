// Fuzzes the reader of GGUF files.
#include <halfscope/io/gguf/detail/gguf_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  return fuzz_file(bytes, size, [](InputFile file) { read_all_tensors(*open_gguf(std::move(file))); });
}
