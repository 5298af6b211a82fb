// Lines of golden files, words of hex digits: the sample in tests/golden/blocks, or every line in the folder
// that CMake names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/format/bits.hpp>

#include "tests/support/catch.hpp"

// Only for sources with both names of folders, which tests/CMakeLists.txt lists.
namespace halfscope {

using Words = std::vector<std::string>;

/// The numbers of a word, `digits` hex digits each.
inline std::vector<std::uint32_t> hex_numbers(const std::string& text, std::size_t digits) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i + digits <= text.size(); i += digits)
    numbers.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(i, digits), nullptr, 16)));
  return numbers;
}

/// The one number of a word.
inline std::uint32_t hex_number(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

inline std::vector<float> floats_of(const std::string& text) {
  std::vector<float> values;
  for (const std::uint32_t bits : hex_numbers(text, 8)) values.push_back(from_bits(bits));
  return values;
}

/// Calls body(words) for each line of a file but comments.
template <typename Body>
void for_each_line(const std::filesystem::path& path, const Body& body) {
  std::ifstream file(path);
  INFO(path.string());
  REQUIRE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (!words.empty() && words[0] != "#") body(words);
  }
}

/// The full set where CMake names it.
inline std::filesystem::path vectors_folder() {
  const std::filesystem::path named = HALFSCOPE_BLOCK_VECTORS;
  return named.empty() ? std::filesystem::path(HALFSCOPE_BLOCK_SAMPLE) : named;
}

inline bool has_full_set() {
  return !std::string_view(HALFSCOPE_BLOCK_VECTORS).empty();
}

}  // namespace halfscope
