// The text form of captures, and their comparison with the models.
#include "tests/captures/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/captures/capture_model.hpp"

namespace halfscope {
namespace {

std::uint64_t digest_of(const std::uint32_t* words, std::size_t count) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t i = 0; i < count; ++i) {
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (words[i] >> 8 * byte & 0xFFu)) * 0x100000001B3u;
  }
  return hash;
}

std::vector<std::uint64_t> digests_of(const std::vector<std::uint32_t>& results, std::size_t each) {
  std::vector<std::uint64_t> digests;
  for (std::size_t i = 0; i < results.size(); i += each)
    digests.push_back(digest_of(results.data() + i, std::min(each, results.size() - i)));
  return digests;
}

const CaptureSet* find_set(std::string_view name) {
  const auto found = std::find_if(capture_sets.begin(), capture_sets.end(),
                                  [&](const CaptureSet& s) { return s.name == name; });
  return found == capture_sets.end() ? nullptr : &*found;
}

const CaptureFunction* find_function(std::string_view name) {
  const auto& functions = capture_functions();
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const auto& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

/// The part of the header that the table of sets decides.
nlohmann::ordered_json description_of(std::string_view name) {
  nlohmann::ordered_json header{{"capture", 1}, {"set", std::string(name)}};
  if (const CaptureSet* set = find_set(name)) {
    header["instruction"] = std::string(name_of(set->instruction));
    header["input"] = std::string(name_of(set->input));
    header["sum"] = std::string(name_of(set->sum));
    header["numbers"] = std::string(name_of(set->numbers));
    header["depth"] = set->depth;
    header["outputs"] = outputs_of(*set);
  } else if (find_function(name) != nullptr) {
    header["instruction"] = "function";
    header["outputs"] = 65536;
  } else {
    throw InvalidArgument(fmt::format("capture: there is no set '{}'", name));
  }
  return header;
}

template <typename Word>
void append_hex(std::string& text, const std::vector<Word>& words, std::size_t per_line) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += fmt::format("{:0{}x}", words[i], 2 * sizeof(Word));
    text += i % per_line == per_line - 1 || i + 1 == words.size() ? '\n' : ' ';
  }
}

template <typename Word>
Word parse_hex(const std::string& text) {
  Word word = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
  if (text.size() != 2 * sizeof(Word) || error != std::errc{} || end != text.data() + text.size())
    throw InvalidArgument(fmt::format("capture: '{}' is no word of {} hex digits", text, 2 * sizeof(Word)));
  return word;
}

std::string field_of(const nlohmann::ordered_json& header, const char* name) {
  if (!header.contains(name) || !header[name].is_string())
    throw InvalidArgument(fmt::format("capture: the header has no text '{}'", name));
  return header[name].get<std::string>();
}

nlohmann::ordered_json parse_header(const std::string& line) {
  auto header = nlohmann::ordered_json::parse(line, nullptr, false);
  if (header.is_discarded() || !header.is_object())
    throw InvalidArgument("capture: the first line is no JSON object");
  const auto described = description_of(field_of(header, "set"));
  for (const auto& [key, value] : described.items()) {
    if (!header.contains(key) || header[key] != value) {
      throw InvalidArgument(fmt::format("capture: {} should be {}: this was made with another table of sets",
                                        key, value.dump()));
    }
  }
  return header;
}

void check_counts(const Capture& capture, std::size_t stored, std::size_t outputs) {
  const bool is_function = find_set(capture.set) == nullptr;
  const std::size_t digests = is_function ? 1 : (outputs + outputs_per_digest - 1) / outputs_per_digest;
  if (capture.results.size() != stored || capture.digests.size() != digests) {
    throw InvalidArgument(fmt::format("capture: {} holds {} results and {} digests instead of {} and {}",
                                      capture.set, capture.results.size(), capture.digests.size(), stored,
                                      digests));
  }
}

TensorCore core_of(const Capture& capture) {
  int major = 0, minor = 0;
  if (std::sscanf(capture.origin.capability.c_str(), "%d.%d", &major, &minor) != 2)
    throw InvalidArgument(fmt::format("capture: '{}' is no compute capability", capture.origin.capability));
  return tensor_core_of_capability({major, minor});
}

CaptureComparison compare_set(const Capture& capture, const CaptureSet& set) {
  const std::vector<std::uint32_t> expected = modelled_results(set, core_of(capture));
  CaptureComparison comparison{.outputs = expected.size(),
                               .binding = set.instruction != CaptureInstruction::cublas};
  for (std::size_t i = 0; i < capture.results.size(); ++i) {
    if (capture.results[i] == expected[i]) continue;
    if (comparison.different++ == 0)
      comparison.first =
          fmt::format("output {}: {:08x} captured, {:08x} modelled", i, capture.results[i], expected[i]);
  }
  const std::vector<std::uint64_t> digests = digests_of(expected, outputs_per_digest);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const bool seen = i == 0 && comparison.different > 0;
    if (capture.digests[i] == digests[i] || seen) continue;
    if (comparison.different == 0)
      comparison.first =
          fmt::format("some of the {} outputs from {} on", outputs_per_digest, i * outputs_per_digest);
    comparison.different += outputs_per_digest;
  }
  return comparison;
}

CaptureComparison compare_function(const Capture& capture, const CaptureFunction& function) {
  std::vector<std::uint32_t> results = exact_results(function);
  CaptureComparison comparison{
      .outputs = results.size(), .different = capture.results.size(), .binding = function.rounded};
  for (const std::uint32_t word : capture.results) {
    if (comparison.first.empty())
      comparison.first = fmt::format("{}({:04x}): {:04x} captured, {:04x} exactly", function.name, word >> 16,
                                     word & 0xFFFFu, results[word >> 16]);
    results[word >> 16] = word & 0xFFFFu;
  }
  if (digests_of(results, results.size()) != capture.digests) {
    comparison.binding = true;  // whatever the function is, the file does not agree with itself
    comparison.different = results.size();
    comparison.first = "the digest is not that of the results";
  }
  return comparison;
}

}  // namespace

Capture make_capture(std::string_view set, const CaptureOrigin& origin,
                     const std::vector<std::uint32_t>& results) {
  Capture capture{.set = std::string(set), .origin = origin, .results = {}, .digests = {}};
  if (find_set(set) != nullptr) {
    capture.results.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(
                                                                  std::min(stored_outputs, results.size())));
    capture.digests = digests_of(results, outputs_per_digest);
    return capture;
  }
  const CaptureFunction* function = find_function(set);
  if (function == nullptr) throw InvalidArgument(fmt::format("capture: there is no set '{}'", set));
  const std::vector<std::uint32_t> exact = exact_results(*function);
  for (std::size_t code = 0; code < exact.size(); ++code) {
    if (results[code] != exact[code])
      capture.results.push_back(static_cast<std::uint32_t>(code << 16) | results[code]);
  }
  capture.digests = digests_of(results, results.size());
  return capture;
}

std::string to_text(const Capture& capture) {
  nlohmann::ordered_json header = description_of(capture.set);
  header["stored"] = capture.results.size();
  header["device"] = capture.origin.device;
  header["capability"] = capture.origin.capability;
  header["driver"] = capture.origin.driver;
  header["toolkit"] = capture.origin.toolkit;
  std::string text = header.dump() + "\nresults\n";
  append_hex(text, capture.results, 8);
  text += "digests\n";
  append_hex(text, capture.digests, 4);
  return text;
}

Capture parse_capture(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);
  const nlohmann::ordered_json header = parse_header(line);
  Capture capture{.set = field_of(header, "set"),
                  .origin = {field_of(header, "device"), field_of(header, "capability"),
                             field_of(header, "driver"), field_of(header, "toolkit")},
                  .results = {},
                  .digests = {}};
  std::string word;
  if (!(lines >> word) || word != "results")
    throw InvalidArgument("capture: the second line is not 'results'");
  while (lines >> word && word != "digests") capture.results.push_back(parse_hex<std::uint32_t>(word));
  while (lines >> word) capture.digests.push_back(parse_hex<std::uint64_t>(word));
  if (!header.contains("stored") || !header["stored"].is_number_unsigned())
    throw InvalidArgument("capture: the header has no number 'stored'");
  check_counts(capture, header["stored"].get<std::size_t>(), header["outputs"].get<std::size_t>());
  return capture;
}

CaptureComparison compare_with_model(const Capture& capture) {
  if (const CaptureSet* set = find_set(capture.set)) return compare_set(capture, *set);
  if (const CaptureFunction* function = find_function(capture.set))
    return compare_function(capture, *function);
  throw InvalidArgument(fmt::format("capture: there is no set '{}'", capture.set));
}

}  // namespace halfscope
