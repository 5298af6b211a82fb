// The main function of the tests: a wrong HALFSCOPE_ISA is one line, not a failure of every test.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include <halfscope/core/error.hpp>
#include <halfscope/core/isa.hpp>

#include "tests/support/catch.hpp"

int main(int count, char** words) {
  try {
    (void)halfscope::active_isa();
  } catch (const halfscope::InvalidArgument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return Catch::Session().run(count, words);
}
