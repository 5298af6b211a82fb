// Report of loss scalers over a log of DeepSpeed or Megatron-LM.
#pragma once

#include <halfscope/scaling/skip_log_replay.hpp>

namespace halfscope {

/// A row for each scaler whose outcome the log determines, two for others: with the least and the greatest
/// gradients that it allows. Below them what the log does not tell; on stderr the scalers that it left out.
void print_log_replay(const SkipLog& log, const SkipLogReplay& replay);
void print_log_replay_json(const SkipLog& log, const SkipLogReplay& replay);

}  // namespace halfscope
