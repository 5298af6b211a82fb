// Fuzzes the reader of .npy arrays, with raw elements taken for bfloat16.
#include <halfscope/io/detail/flat_tensor_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  return fuzz_file(bytes, size, [](InputFile file) {
    read_all_tensors(*open_npy(std::move(file), "input", DType::bf16));
  });
}
