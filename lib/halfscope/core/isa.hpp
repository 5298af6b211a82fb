// Instruction sets of the CPU kernels, which are compiled once for each; the best that the machine has runs.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/names.hpp>

namespace halfscope {

enum class Isa : std::uint8_t { baseline, avx2, avx512 };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Isa>{"baseline", "avx2", "avx512"};

/// The instruction sets that this build has kernels for and this machine can run, slowest first.
[[nodiscard]] std::span<const Isa> available_isas();

/// The instruction set in use: the best available, or the one that the environment variable HALFSCOPE_ISA
/// names. Throws InvalidArgument for a name that is unknown, or whose instructions this machine lacks.
[[nodiscard]] Isa active_isa();

/// Uses `isa` for the life of the object; for tests and benchmarks, not while other threads compute.
class ForcedIsa {
 public:
  explicit ForcedIsa(Isa isa);
  ~ForcedIsa();
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  Isa previous_;
};

}  // namespace halfscope
