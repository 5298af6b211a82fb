// Typed opcodes, one line each: the full mnemonic, its operands, and the function that executes it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tests/ptx/schedule.hpp"
#include "tests/ptx/signature.hpp"

namespace halfscope::ptx {

class Warp;

inline constexpr std::uint32_t zero_register = 0;

/// A register plus a number: an address with its offset. An immediate is a number plus register 0, which
/// holds zero; a predicate plus 1 is its negation, since one bit counts.
struct Operand {
  std::uint32_t reg = zero_register;
  std::uint64_t value = 0;
};

enum class Kind : std::uint8_t {
  thread,   ///< executed by each thread for itself
  branch,   ///< continues at the label
  exit,     ///< the thread ends
  barrier,  ///< waits for all threads of the block
  warp,     ///< executed by the 32 threads of a warp together
};

/// Executes for some threads of a warp; an operation of kind warp for all of them.
using Execute = void (*)(Warp&, Lanes, const Operand*);

struct Action {
  Signature signature;
  Kind kind = Kind::thread;
  Execute execute = nullptr;
};

struct Opcode {
  std::string_view name;
  Action action;
};

// The table, in parts.
[[nodiscard]] std::span<const Opcode> integer_opcodes();
[[nodiscard]] std::span<const Opcode> float_opcodes();
[[nodiscard]] std::span<const Opcode> bit_opcodes();
[[nodiscard]] std::span<const Opcode> compare_opcodes();
[[nodiscard]] std::span<const Opcode> convert_opcodes();
[[nodiscard]] std::span<const Opcode> memory_opcodes();
[[nodiscard]] std::span<const Opcode> warp_opcodes();
[[nodiscard]] std::span<const Opcode> async_opcodes();
[[nodiscard]] std::span<const Opcode> control_opcodes();

/// All of them; their places are the numbers that coverage counts by.
[[nodiscard]] const std::vector<const Opcode*>& all_opcodes();

/// Numbers of the lines called `name`: none, one, or several with operands that differ, as those of mov.b32.
[[nodiscard]] std::span<const std::uint32_t> opcodes_called(std::string_view name);

}  // namespace halfscope::ptx
