// The one macro of the project: marks functions that run on the host and in CUDA kernels.
#pragma once

/// Inlined everywhere, always: the CPU kernels are compiled once per instruction set, and an out-of-line copy
/// built for AVX-512 must never be the one that the linker keeps for a machine without it.
#if defined(__CUDACC__)
#define HALFSCOPE_HD __host__ __device__ __forceinline__
#else
#define HALFSCOPE_HD [[gnu::always_inline]] inline
#endif
