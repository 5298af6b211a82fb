// Names of formats, and how they are read back.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/block_format.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {
namespace {

constexpr std::string_view ftz_suffix = "_ftz", p3109_prefix = "p3109_k";
// Array rounding adds a power of two far above a number, and neither may leave FP32's normal numbers.
constexpr int least_exponent = -126, most_exponent = 100;

/// Reads a decimal number off the front of `text`; no sign, no leading zero.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 1 || text.front() == '0') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Takes `word` off the front of `text`, which may not have it.
bool take_prefix(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// The ends of names by bits: one line per meaning.
struct SpecialsSuffix {
  std::string_view suffix;
  SignBit sign;
  Specials specials;
  int bias_offset;  ///< where the name gives no bias
};
constexpr std::array specials_suffixes{
    SpecialsSuffix{"", SignBit::present, Specials::ieee, 0},
    SpecialsSuffix{"fn", SignBit::present, Specials::nan_only, 0},
    SpecialsSuffix{"f", SignBit::present, Specials::finite_only, 0},
    SpecialsSuffix{"fnuz", SignBit::present, Specials::fnuz, 1},
    SpecialsSuffix{"", SignBit::absent, Specials::nan_only, 0},
    SpecialsSuffix{"f", SignBit::absent, Specials::finite_only, 0},
};

/// "[u]eXmY[bB]" and a suffix; nothing where `name` is not one. Ranges are left to the caller.
std::optional<FloatFormat> parse_by_bits(std::string_view name) {
  const SignBit sign = take_prefix(name, "u") ? SignBit::absent : SignBit::present;
  if (!take_prefix(name, "e")) return std::nullopt;
  const auto exponent_bits = take_number(name);
  if (!exponent_bits || !take_prefix(name, "m")) return std::nullopt;
  const auto mantissa_bits = take_number(name);
  if (!mantissa_bits) return std::nullopt;
  std::optional<int> bias;
  if (take_prefix(name, "b")) {
    bias = take_number(name);
    if (!bias) return std::nullopt;
  }
  for (const SpecialsSuffix& end : specials_suffixes) {
    if (end.suffix != name || end.sign != sign) continue;
    FloatFormat format{.exponent_bits = *exponent_bits, .mantissa_bits = *mantissa_bits};
    format.specials = end.specials;
    format.sign = sign;
    const bool is_in_range = format.exponent_bits <= 8;
    format.bias_offset = bias && is_in_range ? *bias - format.bias() : end.bias_offset;
    return format;
  }
  return std::nullopt;
}

/// "p3109_kKpP", "s" or "u", "e" or "f"; nothing where `name` is not one.
std::optional<FloatFormat> parse_p3109(std::string_view name) {
  if (!take_prefix(name, p3109_prefix)) return std::nullopt;
  const auto width = take_number(name);
  if (!width || !take_prefix(name, "p")) return std::nullopt;
  const auto precision = take_number(name);
  if (!precision || name.size() != 2) return std::nullopt;
  const bool is_signed = name[0] == 's', is_extended = name[1] == 'e';
  if ((!is_signed && name[0] != 'u') || (!is_extended && name[1] != 'f')) return std::nullopt;
  FloatFormat format{.exponent_bits = *width - *precision + (is_signed ? 0 : 1),
                     .mantissa_bits = *precision - 1};
  format.specials = is_extended ? Specials::extended : is_signed ? Specials::fnuz : Specials::nan_only;
  format.bias_offset = 1;
  format.sign = is_signed ? SignBit::present : SignBit::absent;
  return format;
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

void require_bits(const FloatFormat& format, std::string_view name) {
  const bool of_p3109 = name.starts_with(p3109_prefix);
  const int least = of_p3109 ? 1 : 2, most = of_p3109 ? 7 : 8, least_mantissa = of_p3109 ? 0 : 1;
  const bool is_wide_enough = !of_p3109 || code_width(format) >= 3;
  if (format.exponent_bits >= least && format.exponent_bits <= most &&
      format.mantissa_bits >= least_mantissa && format.mantissa_bits <= 23 && is_wide_enough) {
    return;
  }
  throw InvalidArgument(fmt::format("format '{}': {}", name,
                                    of_p3109
                                        ? "K is 3 and P 1 at least, and a number has 1 to 7 exponent bits: "
                                          "K - P signed, K - P + 1 unsigned"
                                        : "eXmY takes X from 2 to 8 and Y from 1 to 23"));
}

void require_subset_of_fp32(const FloatFormat& format, std::string_view name) {
  require_bits(format, name);
  const bool is_like_fp32 = format.exponent_bits == 8;
  if (is_like_fp32 && format == FloatFormat{8, format.mantissa_bits}) return;
  if (is_like_fp32) {
    throw InvalidArgument(fmt::format(
        "format '{}' reaches beyond the largest FP32 number; a suffix or a bias takes X from 2 to 7", name));
  }
  if (format.lowest_exponent() < least_exponent || format.max_exponent() > most_exponent) {
    throw InvalidArgument(
        fmt::format("format '{}' has numbers from 2^{} to 2^{}; choose a bias with 2^{} to 2^{}", name,
                    format.lowest_exponent(), format.max_exponent(), least_exponent, most_exponent));
  }
}

[[noreturn]] void throw_unknown_format(std::string_view name) {
  if (is_block_format_name(name)) {
    const BlockFormat block = parse_block_format(name);  // throws where it is a misspelt one
    throw InvalidArgument(fmt::format(
        "format '{}' has blocks with a scale each; give one without blocks, as {} of its elements", name,
        to_string(block.element.format)));
  }
  if (name.find("e8m0") != std::string_view::npos) {
    throw InvalidArgument(fmt::format(
        "format '{}': E8M0 has powers of two alone, the scales of MX blocks; give a format of such "
        "blocks, as mxfp8_e4m3 or mxfp4",
        name));
  }
  const std::vector<std::string_view> names = table_names(format_catalogue);
  std::vector<std::string_view> known = names;
  for (const FormatAlias& entry : format_aliases) known.push_back(entry.alias);
  throw InvalidArgument(fmt::format(
      "unknown format '{}'{} (one of: {}), or eXmY, eXmYfn, eXmYf, eXmYfnuz, each with _ftz or without, or "
      "p3109_kKpPse; 'halfscope list formats' tells what they hold",
      name, did_you_mean(name, known), fmt::join(names, ", ")));
}

bool is_p3109(const FloatFormat& format) {
  const bool is_unsigned = format.sign == SignBit::absent && format.specials == Specials::nan_only;
  const bool is_beyond_fnuz = format.exponent_bits == 1 || format.mantissa_bits == 0;
  return format.bias_offset == 1 && (format.specials == Specials::extended || is_unsigned || is_beyond_fnuz);
}

std::string p3109_name(const FloatFormat& format) {
  const bool is_signed = format.sign == SignBit::present;
  const int precision = format.mantissa_bits + 1,
            width = format.exponent_bits + precision - (is_signed ? 0 : 1);
  return fmt::format("{}{}p{}{}{}", p3109_prefix, width, precision, is_signed ? 's' : 'u',
                     format.specials == Specials::extended ? 'e' : 'f');
}

/// The name of `format` as if it kept subnormals.
std::string gradual_name(const FloatFormat& format) {
  for (const NamedFormat& entry : format_catalogue) {
    FloatFormat gradual = format;
    gradual.subnormals = entry.format.subnormals;
    if (gradual == entry.format) return std::string(entry.name);
  }
  if (is_p3109(format)) return p3109_name(format);
  std::string name = fmt::format("{}e{}m{}", format.sign == SignBit::present ? "" : "u", format.exponent_bits,
                                 format.mantissa_bits);
  for (const SpecialsSuffix& end : specials_suffixes) {
    if (end.sign != format.sign || end.specials != format.specials) continue;
    if (format.bias_offset != end.bias_offset) name += fmt::format("b{}", format.bias());
    return name + std::string(end.suffix);
  }
  return name;
}

}  // namespace

std::string to_string(const FloatFormat& format) {
  const bool flushed = format.subnormals == Subnormals::flush_to_zero;
  return gradual_name(format) + std::string(flushed ? ftz_suffix : "");
}

FloatFormat parse_format(std::string_view name) {
  std::string_view base = name;
  const bool flushed = base.ends_with(ftz_suffix);
  if (flushed) base.remove_suffix(ftz_suffix.size());
  auto format = parse_by_name(base);
  if (!format) format = parse_p3109(base);
  if (!format) format = parse_by_bits(base);
  if (!format) throw_unknown_format(name);
  require_subset_of_fp32(*format, name);
  if (flushed) format->subnormals = Subnormals::flush_to_zero;
  return *format;
}

std::string look_alike_note(const FloatFormat& format) {
  FloatFormat usual = format;
  if (format.bias_offset != 0 || format.specials != Specials::ieee || format.sign == SignBit::absent)
    return {};
  for (const FloatFormat& ocp : ocp_small_formats) {
    usual.specials = ocp.specials;
    if (usual.specials == Specials::ieee || usual != ocp) continue;
    return fmt::format(
        "{} has IEEE's infinity and NaNs and ends at {}; OCP's format of these bits is {}, which ends at {}",
        to_string(format), from_bits(format.max_finite_bits()), to_string(ocp),
        from_bits(ocp.max_finite_bits()));
  }
  return {};
}

}  // namespace halfscope
