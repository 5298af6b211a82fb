// The loop over exponent fields, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// Whether one of `count` bit patterns has all bits of `exponent`.
template <Isa isa>
bool has_full_exponent_isa(const std::uint16_t* numbers, std::size_t count, std::uint16_t exponent);
template <>
bool has_full_exponent_isa<Isa::baseline>(const std::uint16_t*, std::size_t, std::uint16_t);
template <>
bool has_full_exponent_isa<Isa::avx2>(const std::uint16_t*, std::size_t, std::uint16_t);
template <>
bool has_full_exponent_isa<Isa::avx512>(const std::uint16_t*, std::size_t, std::uint16_t);

/// Whether one of `count` bit patterns has all bits of `exponent`.
template <Isa isa>
bool has_full_exponent_isa(const std::uint32_t* numbers, std::size_t count, std::uint32_t exponent);
template <>
bool has_full_exponent_isa<Isa::baseline>(const std::uint32_t*, std::size_t, std::uint32_t);
template <>
bool has_full_exponent_isa<Isa::avx2>(const std::uint32_t*, std::size_t, std::uint32_t);
template <>
bool has_full_exponent_isa<Isa::avx512>(const std::uint32_t*, std::size_t, std::uint32_t);

/// Whether one of `count` bit patterns has all bits of `exponent`.
template <Isa isa>
bool has_full_exponent_isa(const std::uint64_t* numbers, std::size_t count, std::uint64_t exponent);
template <>
bool has_full_exponent_isa<Isa::baseline>(const std::uint64_t*, std::size_t, std::uint64_t);
template <>
bool has_full_exponent_isa<Isa::avx2>(const std::uint64_t*, std::size_t, std::uint64_t);
template <>
bool has_full_exponent_isa<Isa::avx512>(const std::uint64_t*, std::size_t, std::uint64_t);

}  // namespace halfscope
