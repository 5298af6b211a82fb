// Fuzzes the reader of PyTorch's checkpoints: a legacy file, or the pickle of an archive with one storage.
#include <halfscope/io/torch/detail/torch_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"
#include "tests/support/torch_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  if (is_legacy_torch(input)) {
    return fuzz_file(bytes, size,
                     [](InputFile file) { read_all_tensors(*open_torch_legacy(std::move(file), "t")); });
  }
  const std::string archive = torch_zip_bytes(input, std::string(24, '\x3c'));
  return fuzz_file(reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size(),
                   [](InputFile file) { read_all_tensors(*open_torch_zip(std::move(file), "t")); });
}
