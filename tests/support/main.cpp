// The main function of the tests, where Catch2 does not bring one along.
#define CATCH_CONFIG_MAIN
#include "tests/support/catch.hpp"
