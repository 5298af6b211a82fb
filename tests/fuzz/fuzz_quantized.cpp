// Fuzzes the pairing of payloads with scales, and the numbers and findings that come of it.
#include <halfscope/io/block_findings.hpp>
#include <halfscope/io/detail/flat_tensor_file.hpp>
#include <halfscope/io/quantized_file.hpp>

#include "tests/fuzz/fuzz_reader.hpp"

namespace halfscope {
namespace {

void look_into_blocks(const QuantizedFile& file) {
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    if (!file.has_blocks(i)) continue;
    const BlockFindings found = file.findings(i, TensorInFile{file, i, "input"});
    const auto check = [&](const BlockList& list) {
      if (list.count > found.blocks || list.left_out() < 0) std::abort();
    };
    for (const BlockKind& kind : block_kinds) check(found.*kind.list);
    if (found.clipped) check(*found.clipped);
  }
}

}  // namespace
}  // namespace halfscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  for (const QuantizedView view : {QuantizedView::payload, QuantizedView::values}) {
    fuzz_file(bytes, size, [&](InputFile file) {
      const auto shown = show_quantized(open_safetensors(std::move(file)), "input", {.view = view});
      read_all_tensors(*shown);
      look_into_blocks(*shown);
    });
  }
  return 0;
}
