// A radix-2 transform, filters and their logarithms.
#include "sim/data/log_mel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include <halfscope/arithmetic/elementary.hpp>

namespace halfscope {
namespace {

using Complex = std::complex<double>;

constexpr double pi = 3.14159265358979323846;
constexpr double lowest_frequency = 60, highest_frequency = 7800;
constexpr float pre_emphasis = 0.97f, least_energy = 1e-6f;

/// e^(-2 pi i k / spectrum_size) for k below half of it.
const std::vector<Complex>& roots() {
  static const std::vector<Complex> table = [] {
    std::vector<Complex> all;
    for (std::int64_t k = 0; k < spectrum_size / 2; ++k) {
      const double angle = 2 * pi * static_cast<double>(k) / static_cast<double>(spectrum_size);
      all.emplace_back(cos(angle), -cos(std::abs(pi / 2 - angle)));
    }
    return all;
  }();
  return table;
}

/// Numbers in the order of their reversed bits.
void reverse_bits(std::vector<Complex>& x) {
  for (std::size_t i = 1, j = 0; i < x.size(); ++i) {
    std::size_t bit = x.size() / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
}

void transform(std::vector<Complex>& x) {
  reverse_bits(x);
  for (std::size_t half = 1; half < x.size(); half *= 2) {
    const std::size_t step = x.size() / (2 * half);
    for (std::size_t first = 0; first < x.size(); first += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        const Complex root = roots()[k * step], odd = x[first + half + k], even = x[first + k];
        const Complex turned(root.real() * odd.real() - root.imag() * odd.imag(),
                             root.real() * odd.imag() + root.imag() * odd.real());
        x[first + k] = even + turned;
        x[first + half + k] = even - turned;
      }
    }
  }
}

double mel(double frequency) {
  return 1127.0 * static_cast<double>(log(1 + static_cast<float>(frequency / 700)));
}

std::vector<std::vector<double>> make_mel_weights() {
  const double low = mel(lowest_frequency), step = (mel(highest_frequency) - low) / (mel_filters + 1);
  const auto ramp = [](double from, double to, double at) { return (at - from) / (to - from); };
  std::vector<std::vector<double>> weights;
  for (std::int64_t m = 0; m < mel_filters; ++m) {
    const double left = low + static_cast<double>(m) * step, top = left + step, right = top + step;
    std::vector<double>& row = weights.emplace_back();
    for (std::int64_t k = 0; k <= spectrum_size / 2; ++k) {
      const double at = mel(static_cast<double>(k * speech_rate) / static_cast<double>(spectrum_size));
      row.push_back(std::max(0.0, std::min(ramp(left, top, at), ramp(right, top, at))));
    }
  }
  return weights;
}

const std::vector<double>& hamming_window() {
  static const std::vector<double> window = [] {
    std::vector<double> all;
    for (std::int64_t i = 0; i < frame_samples; ++i) {
      // cos has half a period: the window is symmetric.
      const std::int64_t from_start = std::min(i, frame_samples - 1 - i);
      all.push_back(0.54 - 0.46 * cos(2 * pi * static_cast<double>(from_start) /
                                      static_cast<double>(frame_samples - 1)));
    }
    return all;
  }();
  return window;
}

std::vector<double> emphasised(std::span<const float> samples) {
  std::vector<double> result;
  float before = 0;
  for (const float sample : samples)
    result.push_back(static_cast<double>(sample - pre_emphasis * std::exchange(before, sample)));
  return result;
}

/// Subtracts the mean and divides by the deviation.
void normalise(std::span<float> features) {
  const auto count = static_cast<double>(features.size());
  double mean = 0, variance = 0;
  for (const float x : features) mean += static_cast<double>(x) / count;
  for (const float x : features) {
    const double distance = static_cast<double>(x) - mean;
    variance += distance * distance / count;
  }
  const double deviation = std::sqrt(variance) + 1e-5;
  for (float& x : features) x = static_cast<float>((static_cast<double>(x) - mean) / deviation);
}

}  // namespace

std::vector<float> resample(std::span<const float> samples, std::int64_t rate) {
  if (rate == speech_rate || samples.empty()) return {samples.begin(), samples.end()};
  const auto last = std::ssize(samples) - 1;
  const auto smooth = [&](std::int64_t i) {
    const auto at = [&](std::int64_t j) {
      return samples[static_cast<std::size_t>(std::clamp<std::int64_t>(j, 0, last))];
    };
    return 0.25f * at(i - 1) + 0.5f * at(i) + 0.25f * at(i + 1);
  };
  std::vector<float> result;
  for (std::int64_t i = 0; i * rate <= last * speech_rate; ++i) {
    const std::int64_t place = i * rate, left = place / speech_rate;
    const float share = static_cast<float>(place % speech_rate) / static_cast<float>(speech_rate);
    result.push_back((1 - share) * smooth(left) + share * smooth(left + 1));
  }
  return result;
}

std::vector<double> power_spectrum(std::span<const double> frame) {
  std::vector<Complex> x(static_cast<std::size_t>(spectrum_size));
  std::copy_n(frame.begin(), std::min(frame.size(), x.size()), x.begin());
  transform(x);
  std::vector<double> power;
  for (std::size_t k = 0; k <= x.size() / 2; ++k) {
    power.push_back(x[k].real() * x[k].real() + x[k].imag() * x[k].imag());
  }
  return power;
}

const std::vector<std::vector<double>>& mel_weights() {
  static const std::vector<std::vector<double>> weights = make_mel_weights();
  return weights;
}

Array log_mel(std::span<const float> samples) {
  const std::int64_t count = std::ssize(samples);
  if (count < frame_samples) {
    throw InvalidArgument(fmt::format("{} samples of speech; a frame takes {}", count, frame_samples));
  }
  const std::vector<double> speech = emphasised(samples);
  Array features({(count - frame_samples) / frame_distance + 1, mel_filters});
  std::vector<double> frame(static_cast<std::size_t>(frame_samples));
  for (std::int64_t t = 0; t < features.extent(0); ++t) {
    for (std::size_t i = 0; i < frame.size(); ++i)
      frame[i] = speech[static_cast<std::size_t>(t * frame_distance) + i] * hamming_window()[i];
    const std::vector<double> power = power_spectrum(frame);
    for (std::size_t m = 0; m < mel_weights().size(); ++m) {
      double energy = 0;
      for (std::size_t k = 0; k < power.size(); ++k) energy += mel_weights()[m][k] * power[k];
      features[static_cast<std::size_t>(t * mel_filters) + m] =
          log(static_cast<float>(energy) + least_energy);
    }
  }
  normalise(features.values());
  return features;
}

}  // namespace halfscope
