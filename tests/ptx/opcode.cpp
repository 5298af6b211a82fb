// The table of typed opcodes put together, and its lines by name.
#include "tests/ptx/opcode.hpp"

#include <unordered_map>

namespace halfscope::ptx {
namespace {

using Numbers = std::unordered_map<std::string_view, std::vector<std::uint32_t>>;

std::vector<const Opcode*> put_together() {
  std::vector<const Opcode*> all;
  for (const auto& part :
       {integer_opcodes(), float_opcodes(), bit_opcodes(), compare_opcodes(), convert_opcodes(),
        memory_opcodes(), warp_opcodes(), async_opcodes(), control_opcodes()}) {
    for (const Opcode& opcode : part) all.push_back(&opcode);
  }
  return all;
}

Numbers numbers_by_name() {
  Numbers numbers;
  const auto& all = all_opcodes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    numbers[all[i]->name].push_back(static_cast<std::uint32_t>(i));
  }
  return numbers;
}

}  // namespace

const std::vector<const Opcode*>& all_opcodes() {
  static const std::vector<const Opcode*> all = put_together();
  return all;
}

std::span<const std::uint32_t> opcodes_called(std::string_view name) {
  static const Numbers numbers = numbers_by_name();
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::span<const std::uint32_t>{} : std::span(found->second);
}

}  // namespace halfscope::ptx
