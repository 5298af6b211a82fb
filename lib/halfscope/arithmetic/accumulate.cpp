// Names of accumulation models, and their scalar definition.
#include <halfscope/arithmetic/accumulate.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>

#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

constexpr int largest_chunk = 1 << 20;

float sum_sequential(std::span<const float> terms, const Quantizer& quantizer) {
  float sum = 0;
  for (const float term : terms) sum = round(sum + round(term, quantizer), quantizer);
  return sum;
}

float sum_chunked(std::span<const float> terms, const Quantizer& quantizer, std::size_t chunk) {
  float sum = 0;
  for (std::size_t first = 0; first < terms.size(); first += chunk) {
    sum += sum_sequential(terms.subspan(first, std::min(chunk, terms.size() - first)), quantizer);
  }
  return sum;
}

/// Splits at the largest power of two below the length, so that complete subtrees come first.
float sum_pairwise(std::span<const float> terms, const Quantizer& quantizer) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return round(terms[0], quantizer);
  std::size_t half = 1;
  while (half * 2 < terms.size()) half *= 2;
  return round(sum_pairwise(terms.first(half), quantizer) + sum_pairwise(terms.subspan(half), quantizer),
               quantizer);
}

[[noreturn]] void reject(std::string_view text) {
  std::array<std::string_view, accumulate_models.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = accumulate_models[i].name;
  throw RequestError(unknown_name("accumulation model", text, names));
}

int parse_chunk(std::string_view text, std::string_view digits) {
  int chunk = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), chunk);
  if (error != std::errc{} || end != digits.data() + digits.size() || chunk < 1 || chunk > largest_chunk) {
    throw RequestError(
        fmt::format("accumulation model '{}': give a chunk of 1 to {} terms", text, largest_chunk));
  }
  return chunk;
}

}  // namespace

std::string to_string(const AccumulateModel& model) {
  std::string text = to_string(model.format) + "_" + std::string(name_of(model.order));
  if (model.order == AccumulateOrder::chunked) text += fmt::format("({})", model.chunk);
  return text;
}

AccumulateModel parse_accumulate_model(std::string_view text) {
  const std::size_t separator = text.rfind('_');
  if (separator == std::string_view::npos) reject(text);
  std::string_view order = text.substr(separator + 1);
  AccumulateModel model;
  try {
    model.format = parse_format(text.substr(0, separator));
  } catch (const RequestError&) {
    reject(text);
  }
  if (order.starts_with("chunked(") && order.ends_with(")")) {
    model.chunk = parse_chunk(text, order.substr(8, order.size() - 9));
    order = "chunked";
  } else if (order == "chunked") {
    reject(text);
  }
  for (std::size_t i = 0; i < enum_names<AccumulateOrder>.size(); ++i) {
    if (enum_names<AccumulateOrder>[i] == order) {
      model.order = static_cast<AccumulateOrder>(i);
      return model;
    }
  }
  reject(text);
}

float accumulate(std::span<const float> terms, const AccumulateModel& model) {
  const Quantizer quantizer{.format = model.format};
  switch (model.order) {
    case AccumulateOrder::sequential:
      return sum_sequential(terms, quantizer);
    case AccumulateOrder::chunked:
      return sum_chunked(terms, quantizer, static_cast<std::size_t>(model.chunk));
    case AccumulateOrder::pairwise:
      return sum_pairwise(terms, quantizer);
  }
  return 0;
}

}  // namespace halfscope
