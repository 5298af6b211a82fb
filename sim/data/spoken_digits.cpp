// Has espeak-ng speak digits, once for all runs.
#include "sim/data/datasets.hpp"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/data/cache_folder.hpp"
#include "sim/data/log_mel.hpp"
#include "sim/data/speech.hpp"
#include "sim/data/wav.hpp"

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 10> digits{"zero", "one", "two",   "three", "four",
                                                  "five", "six", "seven", "eight", "nine"};
constexpr std::array<std::string_view, 8> accents{"en-us",  "en-gb",          "en-gb-scotland", "en-gb-x-rp",
                                                  "en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-us-nyc"};
constexpr std::array<std::string_view, 14> variants{"",    "+m1", "+m2", "+m3", "+m4", "+m5",    "+m7",
                                                    "+f1", "+f2", "+f3", "+f4", "+f5", "+klatt", "+klatt2"};
constexpr std::array<std::int64_t, 2> utterances{6000, 500};  // training and test split
constexpr float silence = 0.01f;
constexpr std::int64_t kept_silence = 400;  // samples before and behind the speech
constexpr int recipe = 1;                   // a change of what follows counts it up

const Alphabet digit_letters{" efghinorstuvwxz"};

/// Output of a program; empty where it cannot be run or fails.
std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen((command + " 2>/dev/null </dev/null").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 65536> piece;
  while (const std::size_t count = ::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), count);
  }
  if (::pclose(pipe) != 0) output.clear();
  return output;
}

/// "1.51", of "eSpeak NG text-to-speech: 1.51  Data at: ...".
std::string synthesizer_version() {
  const std::string text = output_of("espeak-ng --version");
  const std::string_view before = ": ";
  const std::size_t first = text.find(before);
  if (first == std::string::npos) {
    throw InvalidArgument(
        "data set spoken_digits: espeak-ng does not run; install Debian's package espeak-ng, or give a "
        "folder "
        "of recordings with --data DIR");
  }
  const std::string version = text.substr(first + before.size());
  return version.substr(0, version.find(' '));
}

/// An utterance's words and voice, as its random bits choose them.
struct Script {
  std::string words;
  std::string voice;
  std::uint32_t speed = 0, pitch = 0;
  float noise_below = 0;  ///< dB
};

RandomStream stream_of(Split split, std::int64_t utterance, std::string_view purpose) {
  return {static_cast<std::uint64_t>(utterance), static_cast<std::uint32_t>(split),
          site_hash(purpose.data(), purpose.size())};
}

Script script_of(Split split, std::int64_t utterance) {
  const RandomStream stream = stream_of(split, utterance, "spoken_digits");
  std::uint64_t drawn = 0;
  const auto below = [&](std::size_t bound) {
    return stream.bits(drawn++) % static_cast<std::uint32_t>(bound);
  };
  Script script;
  const std::uint32_t count = 2 + below(3);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i > 0) script.words += ' ';
    script.words += digits[below(digits.size())];
  }
  script.voice = accents[below(accents.size())];
  script.voice += variants[below(variants.size())];
  script.speed = 180 + below(81);
  script.pitch = 20 + below(61);
  script.noise_below = 5 + 20 * stream.uniform(drawn);
  return script;
}

/// From shortly before the first loud sample to shortly behind the last.
std::vector<float> trimmed(const std::vector<float>& samples) {
  const auto loud = [](float x) { return x > silence || x < -silence; };
  const auto first = std::ranges::find_if(samples, loud) - samples.begin();
  const auto behind = std::find_if(samples.rbegin(), samples.rend(), loud).base() - samples.begin();
  return {samples.begin() + std::max<std::int64_t>(0, first - kept_silence),
          samples.begin() + std::min<std::int64_t>(std::ssize(samples), behind + kept_silence)};
}

void add_noise(std::vector<float>& samples, float below, const RandomStream& stream) {
  double power = 0;
  for (const float x : samples) power += static_cast<double>(x) * static_cast<double>(x);
  const float deviation = static_cast<float>(std::sqrt(power / static_cast<double>(samples.size()))) *
                          exp(-below * 0.115129255f);  // 10^(-below / 20)
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += deviation * normal_pair(stream, i)[0];
}

Utterance speak(Split split, std::int64_t number) {
  const Script script = script_of(split, number);
  const std::string command = fmt::format("espeak-ng -v {} -s {} -p {} -z --stdout '{}'", script.voice,
                                          script.speed, script.pitch, script.words);
  const Recording recording = parse_wav(output_of(command), command, SampleCount::to_the_end);
  std::vector<float> samples = trimmed(resample(recording.samples, recording.rate));
  if (std::ssize(samples) < frame_samples)
    throw RuntimeFailure("data set spoken_digits: '" + command + "' speaks nothing");
  add_noise(samples, script.noise_below, stream_of(split, number, "spoken_digits.noise"));
  return {log_mel(samples), digit_letters.labels(script.words, "spoken_digits")};
}

std::vector<Utterance> speak_all(Split split) {
  std::vector<Utterance> all;
  for (std::int64_t i = 0; i < utterances[static_cast<std::size_t>(split)]; ++i)
    all.push_back(speak(split, i));
  return all;
}

/// The utterances as one array each of all frames, of all labels and of the counts of both.
void add_arrays(const std::string& split, const std::vector<Utterance>& all, SafetensorsFile& file) {
  std::vector<float> features, labels, counts;
  for (const Utterance& utterance : all) {
    features.insert(features.end(), utterance.features.values().begin(), utterance.features.values().end());
    labels.insert(labels.end(), utterance.labels.begin(), utterance.labels.end());
    counts.push_back(static_cast<float>(utterance.features.extent(0)));
    counts.push_back(static_cast<float>(utterance.labels.size()));
  }
  const auto add = [&](const std::string& name, const std::vector<float>& values, Shape shape) {
    Array array(std::move(shape));
    std::ranges::copy(values, array.data());
    file.tensors.push_back({split + "." + name, std::move(array)});
  };
  add("features", features, {std::ssize(features) / mel_filters, mel_filters});
  add("labels", labels, {std::ssize(labels)});
  add("counts", counts, {std::ssize(all), 2});
}

const Array& array_called(const SafetensorsFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.tensors, name, &NamedArray::name);
  if (found == file.tensors.end()) throw InvalidArgument("data set spoken_digits: no " + name);
  return found->array;
}

std::vector<Utterance> utterances_of(const std::string& split, const SafetensorsFile& file) {
  const Array &features = array_called(file, split + ".features"),
              &labels = array_called(file, split + ".labels"),
              &counts = array_called(file, split + ".counts");
  std::vector<Utterance> all;
  std::size_t frame = 0, label = 0;
  for (std::size_t i = 0; i + 1 < counts.size(); i += 2) {
    const auto frames = static_cast<std::int64_t>(counts[i]);
    const auto size = static_cast<std::size_t>(frames * mel_filters);
    Utterance& utterance = all.emplace_back(Utterance{Array({frames, mel_filters}), {}});
    std::ranges::copy(features.values().subspan(frame, size), utterance.features.data());
    frame += size;
    for (const float value : labels.values().subspan(label, static_cast<std::size_t>(counts[i + 1])))
      utterance.labels.push_back(static_cast<std::int32_t>(value));
    label += static_cast<std::size_t>(counts[i + 1]);
  }
  return all;
}

std::filesystem::path kept_in() {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty())
    throw InvalidArgument("data set spoken_digits: neither XDG_CACHE_HOME nor HOME says where to keep it");
  return folder;
}

/// Speaks everything and keeps it in `path`.
void make_file(const std::filesystem::path& path, const std::string& version) {
  print_stderr(
      fmt::format("spoken_digits: espeak-ng {} speaks {} utterances once, which takes minutes; kept in {}\n",
                  version, utterances[0] + utterances[1], printable(path)));
  SafetensorsFile file{{{"synthesizer", "espeak-ng " + version}}, {}};
  for (const Split split : {Split::train, Split::test})
    add_arrays(std::string(name_of(split)), speak_all(split), file);
  create_folder(path.parent_path());
  write_safetensors(path, file);
}

std::string spoken_digits_maker() {
  return "espeak-ng " + synthesizer_version();
}

std::unique_ptr<Dataset> open_spoken_digits(const DatasetSpec& spec) {
  if (!spec.data.empty()) {
    try {
      return read_speech(spec.data);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("data set spoken_digits: {}", error.what()));
    }
  }
  const std::string version = synthesizer_version();
  const std::filesystem::path path =
      kept_in() / fmt::format("spoken_digits-{}-espeak-ng-{}.safetensors", recipe, version);
  if (!std::filesystem::exists(path)) make_file(path, version);
  const SafetensorsFile file = read_safetensors(path);
  return make_speech(digit_letters, utterances_of("train", file), utterances_of("test", file));
}

}  // namespace

constexpr DatasetKind spoken_digits_kind{
    .data = DataKind::speech, .open = open_spoken_digits, .maker = spoken_digits_maker};

}  // namespace halfscope
