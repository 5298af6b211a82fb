// Utterances with transcripts as a data set, in the order of their length.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// Letters that a transcript may have; the label of each is its place, from 1. Label 0 is CTC's blank.
struct Alphabet {
  std::string letters;

  [[nodiscard]] std::int64_t label_count() const { return std::ssize(letters) + 1; }
  /// Throws InvalidArgument, which begins with `source`, for a letter that it does not have.
  [[nodiscard]] std::vector<std::int32_t> labels(std::string_view transcript, std::string_view source) const;
};

struct Utterance {
  Array features;  // (time, mel_filters)
  std::vector<std::int32_t> labels;
};

/// Batches of utterances, padded with zeros to the longest of the batch. Both splits are sorted by length, so
/// that neighbours are alike. Throws InvalidArgument where a split is empty.
[[nodiscard]] std::unique_ptr<Dataset> make_speech(const Alphabet& alphabet, std::vector<Utterance> train,
                                                   std::vector<Utterance> test);

/// Recordings NAME.wav of 16 kHz beside transcripts NAME.txt, in the order of their names; every tenth, from
/// the first on, is a test. Transcripts are letters from a to z, spaces and apostrophes, of either case.
/// Throws InvalidArgument with the file and what is wrong with it.
[[nodiscard]] std::unique_ptr<Dataset> read_speech(const std::filesystem::path& folder);

}  // namespace halfscope
