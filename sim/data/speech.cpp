// Sorts, pads and reads utterances.
#include "sim/data/speech.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/data/log_mel.hpp"
#include "sim/data/wav.hpp"

namespace halfscope {
namespace {

constexpr std::size_t tested_one_in = 10;
const Alphabet english{" 'abcdefghijklmnopqrstuvwxyz"};

std::int64_t frames_of(const Utterance& utterance) {
  return utterance.features.extent(0);
}

class Speech final : public Dataset {
 public:
  Speech(std::int64_t labels, std::vector<Utterance> train, std::vector<Utterance> test)
      : labels_(labels), splits_{std::move(train), std::move(test)} {
    for (std::vector<Utterance>& split : splits_) std::ranges::stable_sort(split, {}, frames_of);
    for (const std::vector<Utterance>& split : splits_)
      longest_ = std::max(longest_, frames_of(split.back()));
  }

  [[nodiscard]] std::int64_t size(Split split) const override { return std::ssize(of(split)); }
  [[nodiscard]] Shape example_shape() const override { return {longest_, mel_filters}; }
  [[nodiscard]] std::int64_t class_count() const override { return labels_; }
  [[nodiscard]] BatchOrder batch_order() const override { return BatchOrder::neighbours; }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    std::vector<const Utterance*> chosen;
    std::int64_t time = 0;
    for (const std::int64_t index : indices) {
      check_index(*this, split, index, "utterance");
      chosen.push_back(&of(split)[static_cast<std::size_t>(index)]);
      time = std::max(time, frames_of(*chosen.back()));
    }
    Batch batch{.inputs = Array::zeros({std::ssize(chosen), time, mel_filters})};
    float* to = batch.inputs.data();
    for (const Utterance* utterance : chosen) {
      std::ranges::copy(utterance->features.values(), to);
      to += time * mel_filters;
      batch.lengths.push_back(static_cast<std::int32_t>(frames_of(*utterance)));
      batch.label_counts.push_back(static_cast<std::int32_t>(utterance->labels.size()));
      batch.labels.insert(batch.labels.end(), utterance->labels.begin(), utterance->labels.end());
    }
    return batch;
  }

 private:
  [[nodiscard]] const std::vector<Utterance>& of(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }

  std::int64_t labels_, longest_ = 0;
  std::array<std::vector<Utterance>, 2> splits_;
};

/// Lower case, with single spaces between words.
std::string cleaned(std::string_view text) {
  std::string result;
  bool space = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      space = !result.empty();
      continue;
    }
    if (space) result += ' ';
    space = false;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

Utterance read_utterance(const std::filesystem::path& wav) {
  const std::string source = printable(wav);
  const Recording recording = parse_wav(read_file(wav), source);
  if (recording.rate != speech_rate) {
    throw InvalidArgument(
        fmt::format("{}: {} samples per second; give {}", source, recording.rate, speech_rate));
  }
  if (std::ssize(recording.samples) < frame_samples) {
    throw InvalidArgument(fmt::format("{}: {} samples; give {} (25 ms) or more", source,
                                      recording.samples.size(), frame_samples));
  }
  std::filesystem::path transcript = wav;
  transcript.replace_extension(".txt");
  const std::string text = cleaned(read_file(transcript));
  if (text.empty()) throw InvalidArgument(printable(transcript) + ": an empty transcript; give words");
  return {log_mel(recording.samples), english.labels(text, printable(transcript))};
}

}  // namespace

std::vector<std::int32_t> Alphabet::labels(std::string_view transcript, std::string_view source) const {
  std::vector<std::int32_t> result;
  for (const char c : transcript) {
    const std::size_t place = letters.find(c);
    if (place == std::string::npos) {
      const auto byte = static_cast<unsigned char>(c);
      throw InvalidArgument(fmt::format(
          "{}: {} is not in the alphabet '{}'", source,
          byte < 0x80 && std::isprint(byte) != 0 ? fmt::format("'{}'", c) : fmt::format("byte {:#04x}", byte),
          letters));
    }
    result.push_back(static_cast<std::int32_t>(place) + 1);
  }
  return result;
}

std::unique_ptr<Dataset> make_speech(const Alphabet& alphabet, std::vector<Utterance> train,
                                     std::vector<Utterance> test) {
  if (train.empty() || test.empty()) {
    throw InvalidArgument(fmt::format("{} utterances to train on and {} to test; give at least one each",
                                      train.size(), test.size()));
  }
  return std::make_unique<Speech>(alphabet.label_count(), std::move(train), std::move(test));
}

std::unique_ptr<Dataset> read_speech(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> recordings;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".wav") recordings.push_back(entry.path());
  }
  if (error) throw InvalidArgument(fmt::format("{}: {}", printable(folder), error.message()));
  if (recordings.size() < 2) {
    throw InvalidArgument(fmt::format("{}: {} recordings NAME.wav; give at least two, each beside NAME.txt",
                                      printable(folder), recordings.size()));
  }
  std::ranges::sort(recordings);
  std::vector<Utterance> train, test;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    (i % tested_one_in == 0 ? test : train).push_back(read_utterance(recordings[i]));
  }
  return make_speech(english, std::move(train), std::move(test));
}

}  // namespace halfscope
