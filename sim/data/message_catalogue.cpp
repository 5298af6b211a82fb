// Reads the tables of a catalogue.
#include "sim/data/message_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>

#include "sim/data/unicode.hpp"

namespace halfscope {
namespace {

constexpr std::uint32_t catalogue_magic = 0x950412de, swapped_magic = 0xde120495;
constexpr std::uint32_t known_revision = 0;    // the major one, in the upper 16 bits
constexpr std::size_t longest_message = 4096;  // bytes; nobody translates more as one sentence
constexpr std::size_t longest_shown = 40;      // characters of a charset's name in a message
constexpr char end_of_context = '\4', end_of_singular = '\0';

/// A catalogue's bytes, read with their borders in mind.
class Catalogue {
 public:
  Catalogue(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {
    const std::uint32_t magic = bytes.size() < 4 ? 0 : number(0);
    swapped_ = magic == swapped_magic;
    if (magic != catalogue_magic && !swapped_) fail("no message catalogue: it begins with other bytes");
    if (number(4) >> 16 != known_revision) fail(fmt::format("revision {}; 0 is known", number(4) >> 16));
  }

  [[nodiscard]] std::uint32_t size() const { return number(8); }
  [[nodiscard]] std::string_view source(std::uint64_t place) const { return text(number(12), place); }
  [[nodiscard]] std::string_view target(std::uint64_t place) const { return text(number(16), place); }

  [[noreturn]] void fail(const std::string& what) const { throw InvalidArgument(source_ + ": " + what); }

 private:
  void check_range(std::uint64_t offset, std::uint64_t count) const {
    if (offset + count <= bytes_.size()) return;
    fail(fmt::format("{} bytes at byte {}, but the file ends at {}; it is damaged", count, offset,
                     bytes_.size()));
  }

  [[nodiscard]] std::uint32_t number(std::uint64_t offset) const {
    check_range(offset, 4);
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[offset + (swapped_ ? i : 3 - i)]);
      value = value << 8 | byte;
    }
    return value;
  }

  [[nodiscard]] std::string_view text(std::uint64_t table, std::uint64_t place) const {
    const std::uint64_t entry = table + 8 * place, length = number(entry), offset = number(entry + 4);
    check_range(offset, length);
    return bytes_.substr(offset, length);
  }

  std::string_view bytes_;
  const std::string& source_;
  bool swapped_ = false;
};

std::string in_lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// "utf-8", of the header "...\nContent-Type: text/plain; charset=UTF-8\n..."; empty where there is none.
std::string charset_of(std::string_view header) {
  constexpr std::string_view key = "charset=";
  const std::string text = in_lower_case(header);
  const std::size_t found = text.find(key);
  if (found == std::string::npos) return {};
  const std::size_t first = found + key.size();
  return text.substr(first, text.find_first_of("\n \t;", first) - first);
}

bool is_single(std::string_view source, std::string_view target) {
  const auto has = [](std::string_view text, char c) { return text.find(c) != std::string_view::npos; };
  return !has(source, end_of_context) && !has(source, end_of_singular) && !has(target, end_of_singular) &&
         !target.empty() && std::max(source.size(), target.size()) <= longest_message;
}

void check_charset(const Catalogue& catalogue, const std::string& charset) {
  if (charset == "utf-8" || charset == "utf8") return;
  catalogue.fail(charset.empty()
                     ? "names no charset"
                     : "charset '" + escaped(charset.substr(0, longest_shown)) + "'; only UTF-8 is read");
}

}  // namespace

std::vector<Message> parse_catalogue(std::string_view bytes, const std::string& source) {
  const Catalogue catalogue(bytes, source);
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < catalogue.size(); ++i) {
    const std::string_view from = catalogue.source(i), to = catalogue.target(i);
    // Messages are sorted, so that the empty one, with the header, is the first.
    if (i == 0) check_charset(catalogue, from.empty() ? charset_of(to) : "");
    if (from.empty() || !is_single(from, to)) continue;
    if (!is_utf8(from) || !is_utf8(to)) catalogue.fail(fmt::format("message {} is not UTF-8", i + 1));
    messages.push_back({std::string(from), std::string(to)});
  }
  return messages;
}

}  // namespace halfscope
