// Cases of typed opcodes: bits of the sources and of the result, written from the PTX ISA.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace halfscope::ptx {

/// Sources that the opcode does not have are left out. A predicate is 0 or 1.
struct OpcodeCase {
  std::string_view opcode;
  std::array<std::uint64_t, 4> sources;
  std::uint64_t result;
};

[[nodiscard]] std::span<const OpcodeCase> integer_cases();
[[nodiscard]] std::span<const OpcodeCase> float_cases();
[[nodiscard]] std::span<const OpcodeCase> double_cases();
[[nodiscard]] std::span<const OpcodeCase> bit_cases();
[[nodiscard]] std::span<const OpcodeCase> convert_cases();

/// The result of one opcode, which a kernel of one thread computes.
[[nodiscard]] std::uint64_t result_of(std::string_view opcode, std::span<const std::uint64_t> sources);

}  // namespace halfscope::ptx
