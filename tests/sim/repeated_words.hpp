// A text that models of verses learn in a second.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "sim/data/datasets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {

/// 200 verses of one of eight words, five times over, the first half of the words in Genesis, the other in
/// the Revelation.
[[nodiscard]] inline std::string repeated_words() {
  constexpr std::array words{"ash", "beech", "cedar", "elm", "fir", "larch", "oak", "pine"};
  std::string text;
  for (int verse = 0; verse < 200; ++verse) {
    const std::size_t word = static_cast<std::size_t>(verse * 37 + verse / 8) % words.size();
    text += word < words.size() / 2 ? "Ge1:1" : "Rev1:1";
    for (int i = 0; i < 5; ++i) text += std::string(" ") + words[word];
    text += '\n';
  }
  return text;
}

/// The data set `name` of that text, `time` tokens an example.
[[nodiscard]] inline std::unique_ptr<Dataset> open_repeated_words(const char* name, std::int64_t time) {
  const TemporaryFolder folder;
  return open_dataset(name, {.data = folder.put("text", repeated_words()),
                             .options = {{"vocabulary", 20}, {"sequence_length", time}}});
}

}  // namespace halfscope
