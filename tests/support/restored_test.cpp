// Changes of a test to the process are undone, after a failure too.
#include "tests/support/restored.hpp"

#include <cstdlib>

#include "tests/support/catch.hpp"

namespace halfscope::restored_test {
namespace {

constexpr const char* variable = "HALFSCOPE_TEST_VARIABLE";

std::string now() {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "unset" : value;
}

TEST_CASE("an environment variable is what it was before", "[support]") {
  CHECK(now() == "unset");
  try {
    const EnvironmentVariable outer(variable, "one");
    {
      const EnvironmentVariable inner(variable, "two");
      CHECK(now() == "two");
    }
    CHECK(now() == "one");
    throw std::runtime_error("as a failing check does");
  } catch (const std::runtime_error&) {
    CHECK(now() == "unset");
  }
  CHECK_THROWS_AS(EnvironmentVariable("no=name", "value"), std::runtime_error);
}

TEST_CASE("the number of threads is what it was before", "[support]") {
  const int before = thread_count();
  CHECK(with_threads(before + 2, [] { return thread_count(); }) == before + 2);
  CHECK(thread_count() == before);
  CHECK_THROWS_AS(with_threads(before + 1, [] { throw std::runtime_error("inside"); }), std::runtime_error);
  CHECK(thread_count() == before);
}

}  // namespace
}  // namespace halfscope::restored_test
