// Whether arrays have numbers that are infinite or NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace halfscope {

/// Whether each bit pattern lacks a bit of `exponent`, the exponent field of an IEEE format: then all numbers
/// are finite. In CPU memory, and in as many threads as there are.
[[nodiscard]] bool all_finite(std::span<const std::uint16_t> numbers, std::uint16_t exponent);
[[nodiscard]] bool all_finite(std::span<const std::uint32_t> numbers, std::uint32_t exponent);
[[nodiscard]] bool all_finite(std::span<const std::uint64_t> numbers, std::uint64_t exponent);

}  // namespace halfscope
