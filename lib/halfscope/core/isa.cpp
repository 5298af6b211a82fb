// Finds the instruction sets of this machine.
#include <halfscope/core/isa.hpp>

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halfscope {
namespace {

#if defined(__x86_64__)
/// Half-precision conversion instructions; clang 14 knows no name for them.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

int count_available() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : avx2 ? 2 : 1;
}
#else
int count_available() {
  return 1;
}
#endif

Isa initial_isa() {
  const auto available = available_isas();
  const char* wanted = std::getenv("HALFSCOPE_ISA");
  if (wanted == nullptr || *wanted == '\0') return available.back();
  const Isa isa = parse_enum<Isa>("instruction set in HALFSCOPE_ISA", wanted);
  if (static_cast<std::size_t>(isa) >= available.size()) {
    throw InvalidArgument("HALFSCOPE_ISA=" + std::string(wanted) + ": this machine has no more than " +
                          std::string(name_of(available.back())));
  }
  return isa;
}

Isa& current_isa() {
  static Isa isa = initial_isa();
  return isa;
}

}  // namespace

std::span<const Isa> available_isas() {
  static constexpr std::array all{Isa::baseline, Isa::avx2, Isa::avx512};
  static const auto count = static_cast<std::size_t>(count_available());
  return std::span(all).first(count);
}

Isa active_isa() {
  return current_isa();
}

ForcedIsa::ForcedIsa(Isa isa) : previous_(current_isa()) {
  if (static_cast<std::size_t>(isa) >= available_isas().size()) {
    throw InvalidArgument("instruction set " + std::string(name_of(isa)) +
                          " is not available on this machine");
  }
  current_isa() = isa;
}

ForcedIsa::~ForcedIsa() {
  current_isa() = previous_;
}

}  // namespace halfscope
