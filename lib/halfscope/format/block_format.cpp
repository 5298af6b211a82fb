// Names of block formats, and how they are read back.
#include <halfscope/format/block_format.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <vector>

#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

constexpr std::string_view grammar_start = "block(";
constexpr int most_block_side = 4096;

struct BlockAlias {
  std::string_view alias, name;
};
constexpr std::array block_aliases{BlockAlias{"mxfp8", "mxfp8_e4m3"}, BlockAlias{"mxfp4_e2m1", "mxfp4"}};

std::vector<std::string_view> rules_of(ScaleFormat scale) {
  std::vector<std::string_view> names;
  for (const ScaleRule& rule : scale_rules) {
    if (rule.scale == scale) names.push_back(rule.name);
  }
  return names;
}

/// The words of `text` between the characters `separator`, without blanks around them.
std::vector<std::string_view> split_words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t end = text.find(separator);
    std::string_view word = text.substr(0, end);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    words.push_back(word);
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void throw_malformed(std::string_view text) {
  throw InvalidArgument(
      fmt::format("block format '{}': write block(ELEMENT, ROWSxCOLUMNS, SCALE/RULE) or one of {}", text,
                  fmt::join(table_names(block_formats), ", ")));
}

int parse_side(std::string_view text, std::string_view digits) {
  int side = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), side);
  const bool is_whole = error == std::errc{} && end == digits.data() + digits.size();
  if (is_whole && side >= 1 && side <= most_block_side) return side;
  throw InvalidArgument(fmt::format(
      "block format '{}': a block is ROWSxCOLUMNS, such as 1x32, each from 1 to {}", text, most_block_side));
}

BlockShape parse_shape(std::string_view text, std::string_view word) {
  const auto sides = split_words(word, 'x');
  if (sides.size() != 2) throw_malformed(text);
  return {parse_side(text, sides[0]), parse_side(text, sides[1])};
}

/// An element of a block saturates, whether its name says so or not.
Quantizer saturating_element(std::string_view name) {
  Quantizer element = parse_quantizer(name);
  element.overflow = Overflow::saturate;
  return element;
}

void check_block_format(const BlockFormat& format, std::string_view text) {
  const FloatFormat& element = format.element.format;
  if (element.sign == SignBit::absent || code_width(element) > 8) {
    throw InvalidArgument(fmt::format("block format '{}': elements have a sign and at most 8 bits, unlike {}",
                                      text, to_string(element)));
  }
  if (format.scale() == ScaleFormat::ue4m3 && element != fp4_e2m1) {
    throw InvalidArgument(fmt::format("block format '{}': the rules of ue4m3 scales are for fp4_e2m1, not {}",
                                      text, to_string(element)));
  }
  const bool takes_tensor_scale = format.rule->tensor != nullptr;
  if (takes_tensor_scale == (format.tensor_scale == TensorScale::fp32)) return;
  throw InvalidArgument(fmt::format(
      "block format '{}': the rule {} {}", text, format.rule->name,
      takes_tensor_scale ? "needs a tensor scale; add ', fp32'" : "has no tensor scale; leave out ', fp32'"));
}

BlockFormat parse_grammar(std::string_view text) {
  if (!text.ends_with(')')) throw_malformed(text);
  const auto words =
      split_words(text.substr(grammar_start.size(), text.size() - grammar_start.size() - 1), ',');
  if (words.size() < 3 || words.size() > 4) throw_malformed(text);
  const auto scale_and_rule = split_words(words[2], '/');
  if (scale_and_rule.size() != 2) throw_malformed(text);
  const auto scale = parse_enum<ScaleFormat>("scale format", scale_and_rule[0]);
  BlockFormat format{.element = saturating_element(words[0]), .block = parse_shape(text, words[1])};
  format.rule = &find_scale_rule(scale_and_rule[1], scale);
  if (words.size() == 4) format.tensor_scale = parse_enum<TensorScale>("tensor scale", words[3]);
  check_block_format(format, text);
  return format;
}

/// The entry of a name without what follows it; nothing where there is none.
const NamedBlockFormat* find_named(std::string_view name) {
  for (const BlockAlias& entry : block_aliases) {
    if (entry.alias == name) name = entry.name;
  }
  for (const NamedBlockFormat& entry : block_formats) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string element_suffix(const Quantizer& element) {
  const std::string whole = to_string(Quantizer{element.format, element.rounding, {}, element.random_bits});
  return whole.substr(to_string(element.format).size());
}

}  // namespace

const ScaleRule& find_scale_rule(std::string_view name, ScaleFormat scale) {
  for (const ScaleRule& rule : scale_rules) {
    if (rule.name == name && rule.scale == scale) return rule;
  }
  throw InvalidArgument(
      unknown_name(fmt::format("rule of {} scales:", name_of(scale)), name, rules_of(scale)));
}

std::string to_string(const BlockFormat& format) {
  for (const NamedBlockFormat& entry : block_formats) {
    BlockFormat plain = format;
    plain.rule = entry.format.rule;
    plain.element = entry.format.element;
    const bool is_entry = plain == entry.format && format.scale() == entry.format.scale() &&
                          format.element.format == entry.format.element.format;
    if (!is_entry) continue;
    std::string name(entry.name);
    if (format.rule != entry.format.rule) name += fmt::format("/{}", format.rule->name);
    return name + element_suffix(format.element);
  }
  return fmt::format("{}{}{}, {}x{}, {}/{}{})", grammar_start, to_string(format.element.format),
                     element_suffix(format.element), format.block.rows, format.block.columns,
                     name_of(format.scale()), format.rule->name,
                     format.tensor_scale == TensorScale::fp32 ? ", fp32" : "");
}

BlockFormat parse_block_format(std::string_view text) {
  if (text.starts_with(grammar_start)) return parse_grammar(text);
  const auto words = split_words(text, '/');
  const NamedBlockFormat* const entry = find_named(words[0]);
  if (entry == nullptr)
    throw InvalidArgument(unknown_name("block format", words[0], table_names(block_formats)) +
                          ", or block(ELEMENT, ROWSxCOLUMNS, SCALE/RULE)");
  BlockFormat format = entry->format;
  std::string element = to_string(format.element.format);
  bool has_rule = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto& roundings = enum_names<Rounding>;
    const std::string_view word = words[i].substr(0, words[i].find('('));
    const bool is_rounding = std::find(roundings.begin(), roundings.end(), word) != roundings.end();
    if (is_rounding) {
      element += fmt::format("/{}", words[i]);
    } else if (has_rule) {
      throw InvalidArgument(fmt::format("block format '{}' gives more than one rule", text));
    } else {
      format.rule = &find_scale_rule(words[i], format.scale());
      has_rule = true;
    }
  }
  format.element = saturating_element(element);
  return format;
}

bool is_block_format_name(std::string_view text) {
  return text.starts_with(grammar_start) || find_named(text.substr(0, text.find('/'))) != nullptr ||
         text.starts_with("mxfp") || text.starts_with("nvfp");
}

float decode_scale(std::uint32_t code, ScaleFormat scale) {
  switch (scale) {
    case ScaleFormat::e8m0:
      return e8m0::decode(code);
    case ScaleFormat::ue4m3:
      return decode(code, ue4m3);
    case ScaleFormat::fp32:
      break;
  }
  return from_bits(code);
}

}  // namespace halfscope
