// Names of accumulation models, and their scalar definition.
#include <halfscope/arithmetic/accumulate.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

#include <halfscope/arithmetic/detail/ordered_sum.hpp>
#include <halfscope/arithmetic/operations.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

constexpr int largest_chunk = 1 << 20;

/// `start` and the terms of a sum of single terms; `term(k)` is term k of `count`.
template <typename Terms>
float sum_from(float start, const Terms& term, std::int64_t count, const AccumulateModel& model) {
  RoundedAdds adds{rounding_grid({.format = model.format})};
  const TermRange all{0, count};
  switch (model.order) {
    case AccumulateOrder::sequential:
      return sum_sequential(adds.rounded(start), term, all, adds);
    case AccumulateOrder::chunked:
      return sum_chunked(round(start, Quantizer{}), term, all, model.chunk, adds);
    case AccumulateOrder::pairwise:
      return adds.add(adds.rounded(start), sum_pairwise(term, all, adds));
    case AccumulateOrder::kahan:
      return sum_kahan(adds.rounded(start), term, all, adds);
    case AccumulateOrder::tensor_core:
    case AccumulateOrder::fused:
    case AccumulateOrder::cublas:
      break;
  }
  check_reduction_model(model);
  return 0;
}

/// From nothing: of a pairwise sum, which adds a start last, without that add.
template <typename Terms>
float sum_of_all(const Terms& term, std::int64_t count, const AccumulateModel& model) {
  if (model.order != AccumulateOrder::pairwise) return sum_from(0, term, count, model);
  RoundedAdds adds{rounding_grid({.format = model.format})};
  return sum_pairwise(term, {0, count}, adds);
}

auto terms_of(std::span<const float> terms) {
  return [terms](std::int64_t k) { return terms[static_cast<std::size_t>(k)]; };
}
auto products_of(std::span<const float> a, std::span<const float> b) {
  return [a, b](std::int64_t k) { return a[static_cast<std::size_t>(k)] * b[static_cast<std::size_t>(k)]; };
}

float fused_sum_from(float start, std::span<const float> a, std::span<const float> b,
                     const Quantizer& quantizer) {
  float sum = round(start, quantizer);
  for (std::size_t k = 0; k < a.size(); ++k) sum = fma(a[k], b[k], sum, quantizer).value;
  return sum;
}

std::vector<float> rounded_to(std::span<const float> values, const FloatFormat& format) {
  std::vector<float> rounded(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) rounded[k] = round(values[k], {.format = format});
  return rounded;
}

[[noreturn]] void throw_unknown(std::string_view text) {
  std::array<std::string_view, accumulate_models.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = accumulate_models[i].name;
  throw InvalidArgument(unknown_name("accumulation model", text, names));
}

int parse_chunk(std::string_view text, std::string_view digits) {
  int chunk = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), chunk);
  if (error != std::errc{} || end != digits.data() + digits.size() || chunk < 1 || chunk > largest_chunk) {
    throw InvalidArgument(
        fmt::format("accumulation model '{}': give a chunk of 1 to {} terms", text, largest_chunk));
  }
  return chunk;
}

/// The number or name between the parentheses of "NAME(ARGUMENT)"; empty where `text` is not of that form.
std::string_view argument_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(")")) return {};
  text.remove_prefix(name.size());
  return text.starts_with("(") ? text.substr(1, text.size() - 2) : std::string_view{};
}

/// "FORMAT_tensor_core(GENERATION)", or with fp16 without it.
AccumulateModel parse_tensor_core(std::string_view text, std::string_view format,
                                  std::string_view generation) {
  AccumulateModel model{.format = fp16, .order = AccumulateOrder::tensor_core};
  if (!format.empty()) model.format = parse_format(format.substr(0, format.size() - 1));
  model.core = {parse_enum<TensorCoreGeneration>("tensor core", generation)};
  try {
    (void)tensor_core_step(model.core, model.format, fp32);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("accumulation model '{}': {}", text, error.what()));
  }
  return model;
}

}  // namespace

std::string to_string(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::cublas) return std::string(library_products.name);
  if (model.order == AccumulateOrder::tensor_core) {
    const std::string operands = model.format == fp16 ? "" : to_string(model.format) + "_";
    return fmt::format("{}tensor_core({})", operands, name_of(model.core.generation));
  }
  std::string text = to_string(model.format) + "_" + std::string(name_of(model.order));
  if (model.order == AccumulateOrder::chunked) text += fmt::format("({})", model.chunk);
  return text;
}

AccumulateModel parse_accumulate_model(std::string_view text) {
  if (text == library_products.name) return {.order = AccumulateOrder::cublas};
  const std::size_t tensor_core = text.find("tensor_core(");
  if (tensor_core != std::string_view::npos && (tensor_core == 0 || text[tensor_core - 1] == '_')) {
    const std::string_view generation = argument_of(text.substr(tensor_core), "tensor_core");
    return parse_tensor_core(text, text.substr(0, tensor_core), generation);
  }
  const std::size_t separator = text.rfind('_');
  if (separator == std::string_view::npos) throw_unknown(text);
  std::string_view order = text.substr(separator + 1);
  AccumulateModel model;
  try {
    model.format = parse_format(text.substr(0, separator));
  } catch (const InvalidArgument&) {
    throw_unknown(text);
  }
  check_sum_format(model.format);
  if (order.starts_with("chunked(") && order.ends_with(")")) {
    model.chunk = parse_chunk(text, argument_of(order, "chunked"));
    order = "chunked";
  } else if (order == "chunked" || order == "tensor_core" || order == "cublas") {
    throw_unknown(text);
  }
  for (std::size_t i = 0; i < enum_names<AccumulateOrder>.size(); ++i) {
    if (enum_names<AccumulateOrder>[i] == order) {
      model.order = static_cast<AccumulateOrder>(i);
      if (model.order == AccumulateOrder::fused) check_fused_format(model.format);
      return model;
    }
  }
  throw_unknown(text);
}

float accumulate(std::span<const float> terms, const AccumulateModel& model) {
  return sum_of_all(terms_of(terms), std::ssize(terms), model);
}

float accumulate_products(std::span<const float> a, std::span<const float> b, const AccumulateModel& model) {
  if (model.order == AccumulateOrder::pairwise) return sum_of_all(products_of(a, b), std::ssize(a), model);
  return accumulate_products_from(0, a, b, model);
}

float accumulate_products_from(float start, std::span<const float> a, std::span<const float> b,
                               const AccumulateModel& model) {
  if (model.order == AccumulateOrder::fused) return fused_sum_from(start, a, b, {.format = model.format});
  if (model.order != AccumulateOrder::tensor_core)
    return sum_from(start, products_of(a, b), std::ssize(a), model);
  const TensorCoreStep& step = tensor_core_step(model.core, model.format, fp32);
  return dot(rounded_to(a, model.format), rounded_to(b, model.format), start, step);
}

void check_reduction_model(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::cublas) {
    throw InvalidArgument(to_string(model) +
                          " is what a GPU's library makes of matrix products; nothing but that "
                          "library gives its sums, so choose an order that has a name");
  }
  if (model.order != AccumulateOrder::tensor_core && model.order != AccumulateOrder::fused) return;
  throw InvalidArgument(to_string(model) +
                        " adds up matrix products; a sum of single terms takes one of the others");
}

void check_sum_format(const FloatFormat& format) {
  if (format.has_signed_zero()) return;
  throw InvalidArgument("a sum takes formats that have -0, not " + to_string(format));
}

void check_fused_format(const FloatFormat& format) {
  check_sum_format(format);
  if (format == fp32 || format.mantissa_bits <= 21) return;
  throw InvalidArgument("fused sums take fp32 and formats of at most 21 mantissa bits, not " +
                        to_string(format));
}

}  // namespace halfscope
