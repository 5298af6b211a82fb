// Messages and checks that all readers of tensor files share.
#include <halfscope/io/detail/parse_error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

void refuse(std::string_view where, std::string_view problem) {
  throw InvalidArgument(fmt::format("{}: {}", where, problem));
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string quoted = to_line(std::string(text.substr(0, longest + 1)));
  if (quoted.size() > longest) quoted.replace(longest, std::string::npos, "...");
  return quoted;
}

std::uint64_t checked_size(const Shape& shape, std::uint64_t unit, std::string_view where) {
  std::int64_t size = 0;
  bool is_beyond = __builtin_add_overflow(unit, std::int64_t{0}, &size), is_empty = false;
  for (const std::int64_t extent : shape) {
    is_empty = is_empty || extent == 0;
    is_beyond = is_beyond || (extent != 0 && __builtin_mul_overflow(size, extent, &size));
  }
  if (is_beyond) refuse(where, "shape has more elements than memory can hold");
  return is_empty ? 0 : static_cast<std::uint64_t>(size);
}

}  // namespace halfscope
