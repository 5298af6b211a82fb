// Message catalogues for tests, put together by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace halfscope {

using MessagePair = std::pair<std::string, std::string>;

inline const MessagePair utf8_header{"", "Language: fr\nContent-Type: text/plain; charset=UTF-8\n"};

enum class ByteOrder : bool { little, big };

inline std::string number_bytes(std::size_t value, ByteOrder order = ByteOrder::little) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  if (order == ByteOrder::big) std::ranges::reverse(bytes);
  return bytes;
}

/// A catalogue of `messages`, in their order: a header of seven numbers, two tables of lengths and offsets,
/// and the texts, each with a zero behind it.
inline std::string mo_bytes(const std::vector<MessagePair>& messages, ByteOrder order = ByteOrder::little) {
  const auto number = [&](std::size_t value) { return number_bytes(value, order); };
  const std::size_t header = 28, table = 8 * messages.size(), first_text = header + 2 * table;
  std::string sources, targets, texts;
  const auto add = [&](std::string& entries, const std::string& text) {
    entries += number(text.size()) + number(first_text + texts.size());
    texts += text + '\0';
  };
  for (const auto& [source, target] : messages) add(sources, source);
  for (const auto& [source, target] : messages) add(targets, target);
  return number(0x950412de) + number(0) + number(messages.size()) + number(header) + number(header + table) +
         number(0) + number(first_text) + sources + targets + texts;
}

}  // namespace halfscope
