// What a program without MPI says where mpirun has started several of it.
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
