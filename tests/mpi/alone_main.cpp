// Refusal of a program without MPI that mpirun has started several times.
#include <cstdio>
#include <exception>

#include "sim/train/processes.hpp"

int main() {
  try {
    const halfscope::ProcessGroup group;
    std::puts("one process");
    return 0;
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
}
