// Recordings, their features against a naive Fourier transform, and utterances as batches.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "sim/data/datasets.hpp"
#include "sim/data/log_mel.hpp"
#include "sim/data/speech.hpp"
#include "sim/data/wav.hpp"
#include "tests/sim/data/wav_files.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::speech_test {
namespace {

using Complex = std::complex<double>;

std::vector<float> tone(double frequency, std::size_t count) {
  std::vector<float> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] =
        static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * frequency * static_cast<double>(i) / 16000));
  }
  return samples;
}

TEST_CASE("a WAVE file is read as it was written", "[speech]") {
  const std::vector<float> samples{0, 0.5f, -1, 0x1p-15f, -0.25f};
  const std::string bytes = wav_bytes(pcm_bytes(samples));
  const Recording recording = parse_wav(bytes, "a.wav");
  CHECK(recording.rate == 16000);
  CHECK(recording.samples == samples);
  // A chunk of odd length, with its byte of padding, between header and format.
  const std::string listed =
      bytes.substr(0, 12) + "LIST" + little_endian(3, 4) + "abc" + std::string(1, '\0') + bytes.substr(12);
  CHECK(parse_wav(listed, "a.wav").samples == samples);
}

TEST_CASE("a WAVE file that cannot be used is named", "[speech]") {
  const std::string data = pcm_bytes(std::vector<float>{0.5f, 0.25f}), whole = wav_bytes(data);
  const auto message = [](const std::string& bytes) {
    return message_of<InvalidArgument>([&] { static_cast<void>(parse_wav(bytes, "a.wav")); });
  };
  check_says(message(""), {"a.wav", "no WAVE file"});
  check_says(message("RIFF0000AVI "), {"no WAVE file"});
  check_says(message(whole.substr(0, 12)), {"without a format"});
  check_says(message(whole.substr(0, 36)), {"without samples"});
  check_says(message(whole.substr(0, whole.size() - 1)), {"a.wav", "1 bytes too early"});
  check_says(message(wav_bytes(data, {.channels = 2})), {"2 channels"});
  check_says(message(wav_bytes(data, {.bits = 8})), {"8 bits"});
  check_says(message(wav_bytes(data, {.code = 3})), {"format 3"});
  CHECK(parse_wav(whole.substr(0, whole.size() - 1), "", SampleCount::to_the_end).samples ==
        std::vector<float>{0.5f});
}

TEST_CASE("the power spectrum is that of a naive Fourier transform", "[speech]") {
  const std::vector<float> numbers = uniform_floats(400, -1, 1, 1);
  const std::vector<double> frame(numbers.begin(), numbers.end());
  const std::vector<double> power = power_spectrum(frame);
  REQUIRE(power.size() == 257);
  for (std::size_t k = 0; k < power.size(); ++k) {
    Complex sum = 0;
    for (std::size_t i = 0; i < frame.size(); ++i) {
      sum += frame[i] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k * i % 512) / 512);
    }
    CHECK(power[k] == Approx(std::norm(sum)).epsilon(1e-10));
  }
}

TEST_CASE("mel filters are triangles that overlap by half", "[speech]") {
  const auto mel = [](double f) { return 1127 * std::log(1 + f / 700); };
  const double low = mel(60), step = (mel(7800) - low) / 41;
  const auto& weights = mel_weights();
  REQUIRE(weights.size() == 40);
  for (std::size_t m = 0; m < 40; ++m) {
    REQUIRE(weights[m].size() == 257);
    for (std::size_t k = 0; k < 257; ++k) {
      const double top = low + static_cast<double>(m + 1) * step;
      const double at = mel(static_cast<double>(k) * 31.25);
      CHECK(weights[m][k] == Approx(std::max(0.0, 1 - std::abs(at - top) / step)).margin(1e-4));
    }
  }
}

TEST_CASE("log-mel features are those of the definition", "[speech]") {
  std::vector<float> samples = uniform_floats(2000, -0.5f, 0.5f, 2);
  const Array features = log_mel(samples);
  REQUIRE(features.shape() == Shape{11, 40});
  std::vector<double> expected;
  for (std::size_t t = 0; t < 11; ++t) {
    std::vector<double> frame;
    for (std::size_t i = 0; i < 400; ++i) {
      const std::size_t at = t * 160 + i;
      const double before = at == 0 ? 0.0 : static_cast<double>(samples[at - 1]);
      const double window = 0.54 - 0.46 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / 399);
      frame.push_back(window * (static_cast<double>(samples[at]) - 0.97 * before));
    }
    const std::vector<double> power = power_spectrum(frame);
    for (const std::vector<double>& filter : mel_weights()) {
      double energy = 1e-6;
      for (std::size_t k = 0; k < power.size(); ++k) energy += filter[k] * power[k];
      expected.push_back(std::log(energy));
    }
  }
  double mean = 0, variance = 0;
  for (const double x : expected) mean += x / 440;
  for (const double x : expected) variance += (x - mean) * (x - mean) / 440;
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(features[i] == Approx((expected[i] - mean) / std::sqrt(variance)).margin(2e-4));
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(log_mel(tone(440, 399))); }),
             {"399", "400"});
}

TEST_CASE("a tone is loudest in the filter around its frequency", "[speech]") {
  for (const double frequency : {300.0, 1000.0, 4000.0}) {
    const Array features = log_mel(tone(frequency, 800));
    const auto frame = features.values().subspan(40, 40);
    const auto loudest = static_cast<std::size_t>(std::ranges::max_element(frame) - frame.begin());
    const auto bin = static_cast<std::size_t>(std::lround(frequency / 31.25));
    CHECK(mel_weights()[loudest][bin] > 0.4);
  }
}

TEST_CASE("resampling keeps a slow tone and the duration", "[speech]") {
  std::vector<float> fast(22050);
  for (std::size_t i = 0; i < fast.size(); ++i)
    fast[i] = static_cast<float>(std::sin(2 * std::numbers::pi * 100 * static_cast<double>(i) / 22050));
  const std::vector<float> slow = resample(fast, 22050);
  CHECK(std::abs(std::ssize(slow) - 16000) <= 1);
  for (std::size_t i = 1; i + 2 < slow.size(); ++i)
    CHECK(slow[i] ==
          Approx(std::sin(2 * std::numbers::pi * 100 * static_cast<double>(i) / 16000)).margin(1e-3));
  CHECK(resample(fast, 16000) == fast);
  CHECK(resample({}, 22050).empty());
}

/// Recordings and transcripts of some lengths.
class SpeechFolder {
 public:
  void add(const std::string& name, std::size_t samples, const std::string& transcript,
           const WavFormat& format = {}) const {
    static_cast<void>(folder_.put(name + ".wav", wav_bytes(pcm_bytes(tone(500, samples)), format)));
    static_cast<void>(folder_.put(name + ".txt", transcript));
  }
  [[nodiscard]] std::unique_ptr<Dataset> open() const {
    return open_dataset("spoken_digits", {.data = folder_.path()});
  }
  [[nodiscard]] std::string error() const {
    return message_of<InvalidArgument>([&] { static_cast<void>(open()); });
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a folder of recordings becomes utterances in the order of their lengths", "[speech]") {
  const SpeechFolder folder;
  folder.add("a", 1000, "Ab  c\n");
  folder.add("b", 1200, "it's");
  folder.add("c", 400, " a");
  const auto speech = folder.open();
  CHECK(speech->size(Split::test) == 1);
  REQUIRE(speech->size(Split::train) == 2);
  CHECK(speech->example_shape() == Shape{6, 40});
  CHECK(speech->class_count() == 29);
  CHECK(speech->batch_order() == BatchOrder::neighbours);
  const Batch test = speech->batch(Split::test, std::vector<std::int64_t>{0});
  CHECK(test.labels == std::vector<std::int32_t>{3, 4, 1, 5});
  const Batch train = speech->batch(Split::train, std::vector<std::int64_t>{0, 1});
  CHECK(train.lengths == std::vector<std::int32_t>{1, 6});
  CHECK(train.label_counts == std::vector<std::int32_t>{1, 4});
  CHECK(train.labels == std::vector<std::int32_t>{3, 11, 22, 2, 21});
  REQUIRE(train.inputs.shape() == Shape{2, 6, 40});
  const auto padding = train.inputs.values().subspan(40, 200);
  CHECK(std::ranges::all_of(padding, [](float x) { return x == 0; }));
  CHECK(train.inputs[240] != 0);
  check_says(message_of<InvalidArgument>(
                 [&] { static_cast<void>(speech->batch(Split::test, std::vector<std::int64_t>{1})); }),
             {"test utterance 1", "0 to 0"});
}

TEST_CASE("the program that makes data is known by name and version", "[speech]") {
  const TemporaryFolder programs;
  const auto path = programs.put(
      "espeak-ng", "#!/bin/sh\necho 'eSpeak NG text-to-speech: 9.87  Data at: /usr/lib/espeak-ng-data'\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const EnvironmentVariable one_program("PATH", programs.path().string());
  CHECK(data_maker("spoken_digits", "") == "espeak-ng 9.87");
  CHECK(data_maker("spoken_digits", "recordings").empty());
  CHECK(data_maker("kjv_text", "").empty());
}

TEST_CASE("recordings and transcripts that cannot be used are named", "[speech]") {
  const auto error_of = [](std::size_t samples, const std::string& transcript, const WavFormat& format = {}) {
    const SpeechFolder folder;
    folder.add("a", 1000, "a");
    folder.add("b", samples, transcript, format);
    return folder.error();
  };
  check_says(error_of(1000, "b", {.rate = 22050}), {"b.wav", "22050 samples per second", "give 16000"});
  check_says(error_of(1000, " \n"), {"b.txt", "empty transcript"});
  check_says(error_of(1000, "route 66"), {"b.txt", "'6' is not in the alphabet"});
  check_says(error_of(1000, "caf\xc3\xa9"), {"b.txt", "byte 0xc3"});
  check_says(error_of(399, "b"), {"b.wav", "399 samples", "400"});
  const SpeechFolder one;
  one.add("a", 1000, "a");
  check_says(one.error(), {"1 recordings", "at least two"});
  const TemporaryFolder none;
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_speech(none / "missing")); }),
             {"missing", "No such file"});
  const EnvironmentVariable no_programs("PATH", "/nonexistent");
  check_says(message_of<InvalidArgument>([] { static_cast<void>(open_dataset("spoken_digits", {})); }),
             {"spoken_digits", "Debian's package espeak-ng", "--data DIR"});
}

}  // namespace
}  // namespace halfscope::speech_test
