// A capture: what a GPU made of one set of made-up operands, as a small text file, and its comparison with
// the CPU's model.
//
// The file's first line is a JSON object: capture (1, the version of this format), set, instruction, input,
// sum, numbers, depth and outputs (as in the table of sets, so that a changed table is noticed), stored,
// device, capability, driver, toolkit. Then the line "results", and the bits of the first `stored` outputs,
// tile after tile, row after row: eight digits of hex each (of f16 the upper four are zero), eight to a line.
// Then the line "digests" and, four to a line, one of 16 digits for each 4096 outputs: FNV-1a, 64 bits, of
// their words. A capture of a function has one digest of all 65,536 results, and its "results" are those
// that are not the exact value rounded to nearest even: code of the input * 65536 + code of the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <halfscope/arithmetic/tensor_core.hpp>

#include "tests/captures/capture_sets.hpp"

namespace halfscope {

/// Where a capture was made.
struct CaptureOrigin {
  std::string device;
  std::string capability;  ///< "9.0"
  std::string driver;
  std::string toolkit;
};

struct Capture {
  std::string set;  ///< a set of capture_sets, or a function of capture_functions
  CaptureOrigin origin;
  std::vector<std::uint32_t> results;
  std::vector<std::uint64_t> digests;
};

/// The outputs of a digest, and how many results of a set are stored whole.
inline constexpr std::size_t outputs_per_digest = 4096, stored_outputs = 1024;

/// Capture of all results of a set, or of the 65,536 of a function.
[[nodiscard]] Capture make_capture(std::string_view set, const CaptureOrigin& origin,
                                   const std::vector<std::uint32_t>& results);
[[nodiscard]] std::string to_text(const Capture& capture);
/// Throws InvalidArgument saying what is wrong with the text, also where the set is not what it is now.
[[nodiscard]] Capture parse_capture(std::string_view text);

/// All results of a set under the model of the capability's tensor core.
[[nodiscard]] std::vector<std::uint32_t> modelled_results(const CaptureSet& set, const TensorCore& core);
/// The exact results of a function rounded to FP16, for all codes; NaN is 0x7FFF.
[[nodiscard]] std::vector<std::uint32_t> exact_results(const CaptureFunction& function);

struct CaptureComparison {
  std::size_t outputs = 0;
  std::size_t different = 0;  ///< stored results that differ, and 4096 for every further digest that does
  std::string first{};        ///< describes the first that differs
  bool binding = true;        ///< false where the model is no claim: cuBLAS, approximate functions
};
/// Throws InvalidArgument where there is no such set, or no model for its capability.
[[nodiscard]] CaptureComparison compare_with_model(const Capture& capture);

}  // namespace halfscope
