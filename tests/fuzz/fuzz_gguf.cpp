// Fuzzes the reader of GGUF files, and of the blocks in them.
#include <halfscope/io/gguf/detail/gguf_file.hpp>
#include <halfscope/io/quantized_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  return fuzz_file(bytes, size, [](InputFile file) {
    const auto shown = show_quantized(open_gguf(std::move(file)), "input");
    read_all_tensors(*shown);
    for (std::size_t i = 0; i < shown->tensors().size(); ++i)
      if (shown->has_blocks(i)) static_cast<void>(shown->findings(i, {}));
  });
}
