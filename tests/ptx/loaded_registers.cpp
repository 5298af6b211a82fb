// Registers that depend on numbers in memory, whatever the order of the instructions.
#include "tests/ptx/loaded_registers.hpp"

#include <algorithm>

namespace halfscope::ptx {
namespace {

bool loads(std::string_view opcode) {
  if (opcode.starts_with("ld.")) return !opcode.starts_with("ld.param");
  return opcode.starts_with("atom.") || opcode.starts_with("ldmatrix.");
}

bool depends(const InstructionWords& words, const std::set<std::string_view>& loaded) {
  if (loads(words.opcode)) return true;
  const auto begin = words.operands.begin() + static_cast<std::ptrdiff_t>(words.results);
  return std::any_of(begin, words.operands.end(), [&](auto name) { return loaded.contains(name); });
}

bool stores(std::string_view opcode) {
  return opcode.starts_with("st.") || opcode.starts_with("cp.") || opcode.starts_with("bar.");
}

}  // namespace

std::set<std::string_view> loaded_registers(std::span<const InstructionWords> instructions) {
  std::set<std::string_view> loaded;
  std::size_t before = 0;
  do {
    before = loaded.size();
    for (const InstructionWords& words : instructions) {
      if (words.opcode.empty() || stores(words.opcode) || !depends(words, loaded)) continue;
      const auto end = words.operands.begin() + static_cast<std::ptrdiff_t>(words.results);
      loaded.insert(words.operands.begin(), end);
    }
  } while (loaded.size() != before);
  return loaded;
}

}  // namespace halfscope::ptx
