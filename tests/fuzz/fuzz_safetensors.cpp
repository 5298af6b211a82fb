// Fuzzes the reader of .safetensors files, read in pieces and as a checkpoint.
#include <halfscope/io/detail/flat_tensor_file.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  fuzz_file(bytes, size, [&](const InputFile&) {
    static_cast<void>(parse_safetensors({reinterpret_cast<const char*>(bytes), size}, "input"));
  });
  return fuzz_file(bytes, size, [](InputFile file) { read_all_tensors(*open_safetensors(std::move(file))); });
}
