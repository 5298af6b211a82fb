// The records of a run as JSON lines: what metrics.jsonl and histograms.jsonl hold.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/trainer.hpp"

namespace halfscope {

/// Records of one step or of several, one JSON value per line. No time, thread count or path goes in here:
/// the same config gives the same bytes.
struct RecordText {
  std::string metrics;
  std::string histograms;
};

/// Appends a step; `evaluation` is null on steps that were not followed by one. Returns the step's line as a
/// value, whose infinities read back as null.
Json append_record(RecordText& text, const StepRecord& record, const Evaluation* evaluation);

}  // namespace halfscope
