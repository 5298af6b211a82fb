// Errors of the readers about files that break their format: one line, which a hostile file cannot make long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// Throws InvalidArgument: "`where`: `problem`".
[[noreturn]] void refuse(std::string_view where, std::string_view problem);

/// `text` as a JSON string, cut after 100 characters.
[[nodiscard]] std::string excerpt(std::string_view text);

/// Product of the extents, all from 0, and `unit`; throws InvalidArgument where a signed number of 64 bits
/// cannot hold that of the extents above 0, whose parts other code multiplies.
[[nodiscard]] std::uint64_t checked_size(const Shape& shape, std::uint64_t unit, std::string_view where);

}  // namespace halfscope
