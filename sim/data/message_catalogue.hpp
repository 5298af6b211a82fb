// Message catalogues of GNU gettext (.mo).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

struct Message {
  std::string source, target;
};

/// Messages of a catalogue in its order, of either byte order, but those with plural forms or a context,
/// those that are not translated, and those of more than 4096 bytes. Source: GNU gettext's manual, "The
/// Format of GNU MO Files". Throws InvalidArgument, which begins with `source`, for what is no catalogue, for
/// one that is cut off or points outside itself, and for charsets other than UTF-8.
[[nodiscard]] std::vector<Message> parse_catalogue(std::string_view bytes, const std::string& source);

}  // namespace halfscope
