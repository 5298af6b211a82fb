// Exhaustive checks row by row, on two threads.
#pragma once

#include <atomic>
#include <string>

#include <halfscope/core/parallel.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"

namespace halfscope {

/// Calls `is_right(row)` for every row on two threads; the first row for which it is not is reported.
template <typename IsRight>
void check_rows(const std::string& what, std::int64_t rows, IsRight is_right) {
  std::atomic<std::int64_t> wrong = -1;
  const Threads threads(2);
  parallel_for(rows, [&](std::int64_t row) {
    if (wrong < 0 && !is_right(row)) wrong = row;
  });
  INFO(what << " is wrong in row " << wrong);
  CHECK(wrong < 0);
}

}  // namespace halfscope
