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
  std::uint64_t size = unit;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size)) {
      refuse(where, "shape has more elements than memory can hold");
    }
  }
  return size;
}

}  // namespace halfscope
