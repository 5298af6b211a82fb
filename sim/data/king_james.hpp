// The King James Bible as the program `bible` prints it, and the classes of its books.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// A text and its name in messages.
struct NamedText {
  std::string bytes;
  std::string source;
};

/// The text in `file`, or where that is empty what `bible -f ge1:1-re22:21` prints: each verse on a line
/// behind its label ("Ge1:1 "). Throws InvalidArgument, naming the data set, where there is none.
[[nodiscard]] NamedText read_text(std::string_view data_set, const std::filesystem::path& file);

/// Classes of the books of the Bible.
enum class Genre : std::uint8_t { law, history, poetry, prophets, gospels, epistles };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<Genre>{"law",      "history", "poetry",
                                                                   "prophets", "gospels", "epistles"};

/// Genre of the book in a verse's label, as the program `bible` abbreviates it: Acts is with the gospels,
/// Revelation with the epistles. Empty for any other book.
[[nodiscard]] std::optional<Genre> genre_of(std::string_view verse_label);

}  // namespace halfscope
