// mma.sync of 16 rows by 8 columns: the instructions that ordered products are made of.
#pragma once

#include <halfscope/kernel/gemm/detail/gemm_ordered_block.cuh>

namespace halfscope::ordered {

#ifdef __CUDA_ARCH__
/// Adds 8 products to every sum: one step of a tensor core.
template <typename V>
__device__ inline void mma_8(Sums<V>& sums, std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
  auto& c = sums.of;
  if constexpr (V::sum == DType::f16) {
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a0), "r"(a1), "r"(b));
  } else if constexpr (V::input == DType::f16) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
  } else {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
#else
    __trap();  // no bf16 before 8.0: the launch refuses it
#endif
  }
}

/// Adds 16: one instruction from compute capability 8.0 on, before it two of 8.
template <typename V>
__device__ inline void mma_16(Sums<V>& sums, const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  auto& c = sums.of;
  if constexpr (V::sum == DType::f16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (V::input == DType::f16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  mma_8(sums, a[0], a[1], b0);
  mma_8(sums, a[2], a[3], b1);
#endif
}
#endif

}  // namespace halfscope::ordered
