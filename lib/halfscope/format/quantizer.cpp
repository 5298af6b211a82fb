// Names of formats and quantizers, and how they are read back.
#include <halfscope/format/quantizer.hpp>

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include <halfscope/format/catalogue.hpp>

namespace halfscope {
namespace {

constexpr std::string_view flushed_suffix = "_ftz";

/// Reads a decimal number off the front of `text`; no sign, no leading zero.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 1 || text.front() == '0') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// "eXmY", "eXmYfn", "eXmYf"; nothing where `name` is not one. Ranges are left to the caller.
std::optional<FloatFormat> parse_by_bits(std::string_view name) {
  if (!name.starts_with('e')) return std::nullopt;
  name.remove_prefix(1);
  const auto exponent_bits = take_number(name);
  if (!exponent_bits || !name.starts_with('m')) return std::nullopt;
  name.remove_prefix(1);
  const auto mantissa_bits = take_number(name);
  if (!mantissa_bits || (!name.empty() && name != "fn" && name != "f")) return std::nullopt;
  const Specials specials = name == "fn"  ? Specials::nan_only
                            : name == "f" ? Specials::finite_only
                                          : Specials::ieee;
  return FloatFormat{*exponent_bits, *mantissa_bits, specials};
}

std::optional<FloatFormat> parse_by_name(std::string_view name) {
  for (const NamedFormat& entry : format_catalogue) {
    if (entry.name == name) return entry.format;
  }
  for (const FormatAlias& entry : format_aliases) {
    if (entry.alias == name) return entry.format;
  }
  return std::nullopt;
}

void require_subset_of_fp32(const FloatFormat& format, std::string_view name) {
  if (format.exponent_bits < 2 || format.exponent_bits > 8 || format.mantissa_bits > 23) {
    throw InvalidArgument(fmt::format("format '{}': eXmY takes X from 2 to 8 and Y from 1 to 23", name));
  }
  if (format.exponent_bits == 8 && format.specials != Specials::ieee) {
    throw InvalidArgument(fmt::format(
        "format '{}' reaches beyond the largest FP32 number; 'fn' and 'f' take X from 2 to 7", name));
  }
}

[[noreturn]] void throw_unknown_format(std::string_view name) {
  throw InvalidArgument(unknown_name("format", name, table_names(format_catalogue)) +
                        ", or eXmY, eXmYfn, eXmYf, each with _ftz or without");
}

/// The name of `format` as if it kept subnormals.
std::string gradual_name(const FloatFormat& format) {
  for (const NamedFormat& entry : format_catalogue) {
    FloatFormat gradual = format;
    gradual.subnormals = entry.format.subnormals;
    if (gradual == entry.format) return std::string(entry.name);
  }
  constexpr std::array<std::string_view, 3> suffixes{"", "fn", "f"};  // in order of Specials
  return fmt::format("e{}m{}{}", format.exponent_bits, format.mantissa_bits,
                     suffixes[static_cast<std::size_t>(format.specials)]);
}

template <typename Enum>
std::optional<Enum> find_enum(std::string_view name) {
  const auto& names = enum_names<Enum>;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

/// Applies one "/WORD" of a quantizer's name; each kind may be given once.
class QuantizerWords {
 public:
  explicit QuantizerWords(std::string_view text) : text_(text) {}

  void apply(std::string_view word, Quantizer& quantizer) {
    if (const auto rounding = find_enum<Rounding>(word); rounding && !rounding_given_) {
      quantizer.rounding = *rounding;
      rounding_given_ = true;
    } else if (const auto overflow = find_enum<Overflow>(word); overflow && !overflow_given_) {
      quantizer.overflow = *overflow;
      overflow_given_ = true;
    } else if (rounding || find_enum<Overflow>(word)) {
      throw InvalidArgument(fmt::format("quantizer '{}' gives more than one {}", text_,
                                        rounding ? "rounding" : "overflow policy"));
    } else {
      std::vector<std::string_view> names(enum_names<Rounding>.begin(), enum_names<Rounding>.end());
      names.insert(names.end(), enum_names<Overflow>.begin(), enum_names<Overflow>.end());
      throw InvalidArgument(
          unknown_name(fmt::format("rounding or overflow policy in '{}':", text_), word, names));
    }
  }

 private:
  std::string_view text_;
  bool rounding_given_ = false;
  bool overflow_given_ = false;
};

}  // namespace

std::string to_string(const FloatFormat& format) {
  const bool flushed = format.subnormals == Subnormals::flush_to_zero;
  return gradual_name(format) + std::string(flushed ? flushed_suffix : "");
}

FloatFormat parse_format(std::string_view name) {
  std::string_view base = name;
  const bool flushed = base.ends_with(flushed_suffix);
  if (flushed) base.remove_suffix(flushed_suffix.size());
  auto format = parse_by_name(base);
  if (!format) format = parse_by_bits(base);
  if (!format) throw_unknown_format(name);
  require_subset_of_fp32(*format, name);
  if (flushed) format->subnormals = Subnormals::flush_to_zero;
  return *format;
}

std::string to_string(const Quantizer& quantizer) {
  std::string text = to_string(quantizer.format);
  if (quantizer.rounding != Rounding::nearest_even) text += fmt::format("/{}", name_of(quantizer.rounding));
  if (quantizer.overflow != Overflow::infinity) text += fmt::format("/{}", name_of(quantizer.overflow));
  return text;
}

Quantizer parse_quantizer(std::string_view text) {
  std::string_view rest = text;
  const auto take_word = [&rest] {
    const auto slash = rest.find('/');
    const std::string_view word = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    return word;
  };
  if (text.ends_with('/')) throw InvalidArgument(fmt::format("quantizer '{}' ends in '/'", text));
  Quantizer quantizer{parse_format(take_word())};
  for (QuantizerWords words(text); !rest.empty();) words.apply(take_word(), quantizer);
  return quantizer;
}

}  // namespace halfscope
