// Runs the program `bible`, and knows its books.
#include "sim/data/king_james.hpp"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

constexpr const char* bible_program = "bible -f ge1:1-re22:21";

using Books = std::vector<std::string_view>;

const std::array<Books, enum_names<Genre>.size()>& books() {
  static const std::array<Books, enum_names<Genre>.size()> all{
      Books{"Ge", "Exo", "Lev", "Num", "Deu"},
      Books{"Josh", "Jdgs", "Ruth", "1Sm", "2Sm", "1Ki", "2Ki", "1Chr", "2Chr", "Ezra", "Neh", "Est"},
      Books{"Job", "Psa", "Prv", "Eccl", "SSol"},
      Books{"Isa", "Jer", "Lam", "Eze", "Dan", "Hos", "Joel", "Amos", "Obad", "Jonah", "Mic", "Nahum", "Hab",
            "Zep", "Hag", "Zec", "Mal"},
      Books{"Mat", "Mark", "Luke", "John", "Acts"},
      Books{"Rom",   "1Cor", "2Cor", "Gal", "Eph",  "Phi",  "Col", "1Th", "2Th", "1Tim", "2Tim",
            "Titus", "Phmn", "Heb",  "Jas", "1Pet", "2Pet", "1Jn", "2Jn", "3Jn", "Jude", "Rev"}};
  return all;
}

/// Output of the program; empty when it is not installed or fails.
std::string printed_bible() {
  std::string text;
  FILE* pipe = ::popen((std::string(bible_program) + " 2>/dev/null </dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 65536> piece;
  while (const std::size_t count = ::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), count);
  }
  if (::pclose(pipe) != 0) text.clear();
  return text;
}

/// "1Sm" of "1Sm2:3".
std::string_view book_of(std::string_view label) {
  const std::size_t chapter = label.find_last_not_of("0123456789", label.find(':') - 1);
  return label.substr(0, chapter + 1);
}

}  // namespace

NamedText read_text(std::string_view data_set, const std::filesystem::path& file) {
  if (!file.empty()) {
    try {
      return {read_file(file), printable(file)};
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("data set {}: {}", data_set, error.what()));
    }
  }
  NamedText text{printed_bible(), bible_program};
  if (text.bytes.empty()) {
    throw InvalidArgument(
        fmt::format("data set {}: '{}' prints no text; install Debian's packages bible-kjv and "
                    "bible-kjv-text, or give a text with --data FILE",
                    data_set, bible_program));
  }
  return text;
}

std::optional<Genre> genre_of(std::string_view verse_label) {
  if (verse_label.find(':') == std::string_view::npos) return std::nullopt;
  const std::string_view book = book_of(verse_label);
  for (std::size_t genre = 0; genre < books().size(); ++genre) {
    if (std::ranges::find(books()[genre], book) != books()[genre].end()) return static_cast<Genre>(genre);
  }
  return std::nullopt;
}

}  // namespace halfscope
