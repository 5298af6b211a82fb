// The loop that counts codes, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>

namespace halfscope {

/// Counts `count` words whose elements are `width` bytes wide in `counts`, of [magnitude] and then of
/// [WordPlaces::magnitudes + i % zeros]. Returns how many elements were -0, which count as zeros.
template <Isa isa>
std::uint32_t count_words_isa(const std::byte* words, std::size_t count, std::size_t width,
                              std::uint32_t* counts);
template <>
std::uint32_t count_words_isa<Isa::baseline>(const std::byte*, std::size_t, std::size_t, std::uint32_t*);
template <>
std::uint32_t count_words_isa<Isa::avx2>(const std::byte*, std::size_t, std::size_t, std::uint32_t*);
template <>
std::uint32_t count_words_isa<Isa::avx512>(const std::byte*, std::size_t, std::size_t, std::uint32_t*);

}  // namespace halfscope
