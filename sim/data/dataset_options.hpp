// Options that several data sets take: name, default, range and text, each once.
#pragma once

#include "sim/options/entry_options.hpp"

namespace halfscope {

inline constexpr EntryOption image_size_option{
    "image_size", 64, {1, 4096}, "height and width of composed scenes, pixels", OptionKind::whole_number};
inline constexpr EntryOption vocabulary_option{
    "vocabulary",
    4096,
    {2, 1e6},
    "tokens of a text or of each language: its most frequent words, and one for the rest",
    OptionKind::whole_number};
inline constexpr EntryOption sequence_length_option{
    "sequence_length", 32, {1, 4096}, "tokens per example", OptionKind::whole_number};
inline constexpr EntryOption modulus_option{
    "modulus", 59, {3, 4096}, "of sums, and the number of tokens", OptionKind::whole_number};

}  // namespace halfscope
