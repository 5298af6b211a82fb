// A module of PTX: its entries with their parameters, registers, shared and local bytes and instructions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/opcode.hpp"

namespace halfscope::ptx {

/// Registers that every entry has: the zero, then the special ones.
enum class Special : std::uint32_t { tid_x = 1, ntid_x, ctaid_x, nctaid_x, count };

struct Instruction {
  std::uint32_t opcode = 0;         ///< number in all_opcodes()
  Operand guard{zero_register, 1};  ///< a predicate; without one, true
  std::vector<Operand> operands;    ///< vectors in their order
  std::uint32_t target = 0;         ///< a branch's: number of an instruction
  int line = 0;
  std::string text;
};

struct Register {
  std::string name;
  Width width = Width::bits32;
};

/// Bytes with a name: a parameter, or an array.
struct Variable {
  std::string name;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Entry {
  std::string name;
  std::vector<Variable> parameters;
  std::size_t parameter_bytes = 0;
  std::vector<Register> registers;
  std::vector<Variable> shared_arrays;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory begins behind them, aligned for it
  bool has_dynamic_shared = false;
  std::size_t local_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::vector<Instruction> code;
};

struct Module {
  std::string version;
  int target = 0;  ///< 80 of sm_80
  std::vector<Entry> entries;

  /// Throws InvalidArgument naming the entries that there are.
  [[nodiscard]] const Entry& entry(std::string_view name) const;
};

/// Throws ParseError, with the line, at each directive, opcode, modifier, register or label that is not
/// known.
[[nodiscard]] Module parse(std::string_view text);

}  // namespace halfscope::ptx
