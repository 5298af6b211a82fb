// Names of quantizers, and how they are read back.
#include <halfscope/format/quantizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace halfscope {
namespace {

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
    const int random_bits = random_bits_of(word);
    if (random_bits > 0) word = name_of(Rounding::stochastic);
    if (const auto rounding = find_enum<Rounding>(word); rounding && !rounding_given_) {
      quantizer.rounding = *rounding;
      quantizer.random_bits = random_bits;
      rounding_given_ = true;
    } else if (const auto overflow = find_enum<Overflow>(word); overflow && !overflow_given_) {
      quantizer.overflow = *overflow;
      overflow_given_ = true;
    } else if (rounding || find_enum<Overflow>(word)) {
      throw InvalidArgument(fmt::format("format '{}' gives more than one {}", text_,
                                        rounding ? "rounding" : "overflow policy"));
    } else {
      std::vector<std::string_view> names(enum_names<Rounding>.begin(), enum_names<Rounding>.end());
      names.insert(names.end(), enum_names<Overflow>.begin(), enum_names<Overflow>.end());
      throw InvalidArgument(
          unknown_name(fmt::format("rounding or overflow policy in '{}':", text_), word, names));
    }
  }

 private:
  /// N of "stochastic(N)"; 0 of any other word.
  [[nodiscard]] int random_bits_of(std::string_view word) const {
    const std::string_view name = name_of(Rounding::stochastic);
    if (!word.starts_with(name) || word.size() == name.size() || word[name.size()] != '(') return 0;
    const std::string_view digits = word.substr(name.size() + 1);
    int bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    const bool is_number =
        error == std::errc{} && std::string_view(end, digits.data() + digits.size()) == ")";
    if (is_number && digits.front() != '0' && bits >= 1 && bits <= most_random_bits) return bits;
    throw InvalidArgument(
        fmt::format("format '{}': stochastic(N) takes N random bits from 1 to {}", text_, most_random_bits));
  }

  std::string_view text_;
  bool rounding_given_ = false;
  bool overflow_given_ = false;
};

}  // namespace

std::string to_string(const Quantizer& quantizer) {
  std::string text = to_string(quantizer.format);
  if (quantizer.rounding != Rounding::nearest_even) text += fmt::format("/{}", name_of(quantizer.rounding));
  if (quantizer.random_bits > 0) text += fmt::format("({})", quantizer.random_bits);
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
  if (text.ends_with('/')) throw InvalidArgument(fmt::format("format '{}' ends in '/'", text));
  Quantizer quantizer{parse_format(take_word())};
  for (QuantizerWords words(text); !rest.empty();) words.apply(take_word(), quantizer);
  return quantizer;
}

}  // namespace halfscope
