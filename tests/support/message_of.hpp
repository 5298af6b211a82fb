// Error of a failing call: its type and its one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/error.hpp>

#include "tests/support/catch.hpp"

namespace halfscope {

/// The message of the `Expected` that `call` throws; the test fails if it throws nothing, something else, or
/// a message of several lines.
template <typename Expected, typename Call>
[[nodiscard]] std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  FAIL("nothing was thrown");
  return {};
}

/// Checks that each of `parts` is in `message`.
inline void check_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO("message: " << message << "\nshould say: " << part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace halfscope
