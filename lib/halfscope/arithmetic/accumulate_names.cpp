// Names of orders of sums.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <vector>

#include <halfscope/arithmetic/accumulate.hpp>

namespace halfscope {
namespace {

constexpr int most_terms = 1 << 20;

[[noreturn]] void throw_unknown(std::string_view text) {
  std::vector<std::string_view> names;
  for (const NamedAccumulateModel& entry : accumulate_models) names.push_back(entry.name);
  for (const NamedAccumulateModel& entry : cpu_product_models) names.push_back(entry.name);
  throw InvalidArgument(unknown_name("order", text, names));
}

/// A number of terms; `right` says how it is given.
int parse_terms(std::string_view text, std::string_view digits, std::string_view right) {
  int terms = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), terms);
  if (error != std::errc{} || end != digits.data() + digits.size() || terms < 1 || terms > most_terms) {
    throw InvalidArgument(fmt::format("order '{}': give {} of 1 to {} terms", text, right, most_terms));
  }
  return terms;
}

/// The text between the parentheses of "NAME(ARGUMENTS)"; empty where `text` is not of that form.
std::string_view arguments_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(")")) return {};
  text.remove_prefix(name.size());
  return text.starts_with("(") ? text.substr(1, text.size() - 2) : std::string_view{};
}

/// "KEY=VALUE", or a value without a key.
struct Argument {
  std::string_view key, value;
};

/// Arguments between commas; at least one, which may be empty.
std::vector<Argument> split_arguments(std::string_view text) {
  std::vector<Argument> arguments;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string_view word = text.substr(0, comma);
    if (more) text.remove_prefix(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const std::size_t equals = word.find('=');
    const bool has_key = equals != std::string_view::npos;
    arguments.push_back(
        {has_key ? word.substr(0, equals) : std::string_view{}, has_key ? word.substr(equals + 1) : word});
  }
  return arguments;
}

int parse_constant(std::string_view text, const Argument& argument) {
  int value = 0;
  const char* const end = argument.value.data() + argument.value.size();
  const auto [rest, error] = std::from_chars(argument.value.data(), end, value);
  if (error == std::errc{} && rest == end) return value;
  throw InvalidArgument(fmt::format("order '{}': give {}=N, a whole number", text, argument.key));
}

void parse_result(std::string_view text, std::string_view value, TensorCoreConstants& constants) {
  const Quantizer quantizer = parse_quantizer(value);
  if (quantizer.overflow != Overflow::infinity) {
    throw InvalidArgument(
        fmt::format("order '{}': results overflow to infinity; give "
                    "result=FORMAT/ROUNDING without {}",
                    text, name_of(quantizer.overflow)));
  }
  constants.result = quantizer.format;
  constants.rounding = quantizer.rounding;
}

[[noreturn]] void throw_constants(std::string_view text) {
  throw InvalidArgument(
      fmt::format("order '{}': give tensor_core(products=16, bits=25, zero=-133, "
                  "result=fp32/toward_zero); zero, result and promote may be left out",
                  text));
}

/// "products=N, bits=N[, zero=N][, result=FORMAT/ROUNDING][, promote=TERMS]"
void parse_constants(std::string_view text, const std::vector<Argument>& arguments, AccumulateModel& model) {
  TensorCoreConstants& constants = model.core.constants;
  bool has_zero = false;
  for (const Argument& argument : arguments) {
    if (argument.key == "products") {
      constants.products = parse_constant(text, argument);
    } else if (argument.key == "bits") {
      constants.fraction_bits = parse_constant(text, argument);
    } else if (argument.key == "zero") {
      constants.zero_exponent = parse_constant(text, argument);
      has_zero = true;
    } else if (argument.key == "result") {
      parse_result(text, argument.value, constants);
    } else if (argument.key == "promote") {
      model.chunk = parse_terms(text, argument.value, "promote=N");
    } else {
      throw_constants(text);
    }
  }
  if (constants.products == 0 || constants.fraction_bits == 0) throw_constants(text);
  if (!has_zero) constants.zero_exponent = usual_zero_exponent(model.core.output(), constants.fraction_bits);
}

void parse_generation(std::string_view text, const std::vector<Argument>& arguments, AccumulateModel& model) {
  model.core = {parse_enum<TensorCoreGeneration>("tensor core", arguments.front().value)};
  for (const Argument& argument : std::span(arguments).subspan(1)) {
    if (argument.key != "promote") {
      throw InvalidArgument(fmt::format("order '{}': give tensor_core({}) or with it promote=128", text,
                                        name_of(model.core.generation)));
    }
    model.chunk = parse_terms(text, argument.value, "promote=N");
  }
}

/// A unit's model without its arguments; `format`, "FORMAT_" or nothing for FP16, is its operands'.
AccumulateModel model_of_unit(AccumulateOrder order, std::string_view format) {
  AccumulateModel model{.format = fp16, .order = order};
  if (!format.empty()) model.format = parse_format(format.substr(0, format.size() - 1));
  return model;
}

/// "FORMAT_matrix_core(GENERATION)".
AccumulateModel parse_matrix_core(std::string_view format, std::string_view generation) {
  AccumulateModel model = model_of_unit(AccumulateOrder::matrix_core, format);
  model.matrix_core = parse_enum<MatrixCoreGeneration>("matrix core", generation);
  return model;
}

/// "FORMAT_tensor_core(GENERATION[, promote=TERMS])" or with constants.
AccumulateModel parse_tensor_core(std::string_view text, std::string_view format,
                                  const std::vector<Argument>& arguments) {
  AccumulateModel model = model_of_unit(AccumulateOrder::tensor_core, format);
  if (arguments.front().key.empty()) {
    parse_generation(text, arguments, model);
  } else {
    parse_constants(text, arguments, model);
  }
  return model;
}

/// Throws InvalidArgument where a unit does not take the format or the promotion.
void check_unit(std::string_view text, const AccumulateModel& model) {
  try {
    if (model.order == AccumulateOrder::matrix_core) {
      (void)matrix_core_step(model.matrix_core, model.format);
    } else {
      (void)product_step(model);
    }
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("order '{}': {}", text, error.what()));
  }
}

/// A generation's name, or constants without those that are as usual.
std::string core_name(const TensorCore& core) {
  if (!core.is_free()) return std::string(name_of(core.generation));
  const TensorCoreConstants& own = core.constants;
  std::string text = fmt::format("products={}, bits={}", own.products, own.fraction_bits);
  if (own.zero_exponent != usual_zero_exponent(core.output(), own.fraction_bits))
    text += fmt::format(", zero={}", own.zero_exponent);
  const Quantizer result{.format = own.result, .rounding = own.rounding};
  if (result != Quantizer{.rounding = Rounding::toward_zero}) text += ", result=" + to_string(result);
  return text;
}

/// "" for fp16, else "FORMAT_".
std::string operands_name(const FloatFormat& format) {
  return format == fp16 ? "" : to_string(format) + "_";
}

std::string tensor_core_name(const AccumulateModel& model) {
  const std::string promotion = model.chunk > 0 ? fmt::format(", promote={}", model.chunk) : "";
  return fmt::format("{}tensor_core({}{})", operands_name(model.format), core_name(model.core), promotion);
}

}  // namespace

std::string to_string(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::cublas) return std::string(library_products.name);
  if (model.order == AccumulateOrder::tensor_core) return tensor_core_name(model);
  if (model.order == AccumulateOrder::matrix_core)
    return fmt::format("{}matrix_core({})", operands_name(model.format), name_of(model.matrix_core));
  std::string text = to_string(model.format) + "_" + std::string(name_of(model.order));
  if (model.order == AccumulateOrder::chunked) text += fmt::format("({})", model.chunk);
  return text;
}

AccumulateModel parse_accumulate_model(std::string_view text) {
  if (text == library_products.name) return {.order = AccumulateOrder::cublas};
  for (const std::string_view unit : {"tensor_core", "matrix_core"}) {
    const std::size_t place = text.find(fmt::format("{}(", unit));
    if (place == std::string_view::npos || (place != 0 && text[place - 1] != '_')) continue;
    const std::string_view format = text.substr(0, place), arguments = arguments_of(text.substr(place), unit);
    const AccumulateModel model = unit == "matrix_core"
                                      ? parse_matrix_core(format, arguments)
                                      : parse_tensor_core(text, format, split_arguments(arguments));
    check_unit(text, model);
    return model;
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
    model.chunk = parse_terms(text, arguments_of(order, "chunked"), "a chunk");
    order = "chunked";
  } else if (order == "chunked" || order == "tensor_core" || order == "matrix_core" || order == "cublas") {
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

}  // namespace halfscope
