// Log-mel features of speech: what a network hears.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope {

inline constexpr std::int64_t speech_rate = 16000;   ///< samples per second
inline constexpr std::int64_t mel_filters = 40;      ///< features of a frame
inline constexpr std::int64_t frame_samples = 400;   ///< 25 ms, a Hamming window
inline constexpr std::int64_t frame_distance = 160;  ///< 10 ms
inline constexpr std::int64_t spectrum_size = 512;   ///< samples of a transform, zeros behind the frame's

/// Samples at `speech_rate` of those at `rate`: smoothed by 1/4, 1/2, 1/4, then between neighbours linearly.
/// The samples themselves where the rates are equal.
[[nodiscard]] std::vector<float> resample(std::span<const float> samples, std::int64_t rate);

/// |X[k]|^2 for k = 0 to spectrum_size / 2 of the discrete Fourier transform of a frame, in double precision
/// from the project's own cosine: the same bits on every machine.
[[nodiscard]] std::vector<double> power_spectrum(std::span<const double> frame);

/// (mel_filters, spectrum_size / 2 + 1): triangles between 60 and 7800 Hz, evenly spaced on the mel scale
/// 1127 log(1 + f / 700), which rise from 0 to 1 and fall to 0.
[[nodiscard]] const std::vector<std::vector<double>>& mel_weights();

/// (frames, mel_filters): samples with pre-emphasis 0.97, cut into windows; log of the filters' energies and
/// 1e-6, less their mean over the utterance, divided by their deviation. Throws InvalidArgument for samples
/// of less than a frame.
[[nodiscard]] Array log_mel(std::span<const float> samples);

}  // namespace halfscope
