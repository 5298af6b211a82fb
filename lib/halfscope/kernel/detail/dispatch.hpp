// The choice of a kernel by instruction set.
#pragma once

#include <halfscope/core/isa.hpp>

namespace halfscope {

#if defined(HALFSCOPE_TARGET_ISA)
/// The instruction set that this translation unit is compiled for; only in *_simd.cpp.
inline constexpr Isa target_isa = Isa::HALFSCOPE_TARGET_ISA;
#endif

/// Calls `kernel.template operator()<isa>()` for the active instruction set.
template <typename Kernel>
decltype(auto) dispatch_isa(Kernel&& kernel) {
#if defined(__x86_64__)
  switch (active_isa()) {
    case Isa::avx512:
      return kernel.template operator()<Isa::avx512>();
    case Isa::avx2:
      return kernel.template operator()<Isa::avx2>();
    case Isa::baseline:
      break;
  }
#endif
  return kernel.template operator()<Isa::baseline>();
}

}  // namespace halfscope
