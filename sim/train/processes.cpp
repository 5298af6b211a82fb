// Shares of the processes.
#include "sim/train/processes.hpp"

namespace halfscope {

ProcessShare share_of(std::int64_t total, int process) {
  const std::int64_t processes = process_count();
  const std::int64_t first = total * process / processes;
  return {first, total * (process + 1) / processes - first};
}

}  // namespace halfscope
