// Tables of scales: E8M0 by the binade of the largest magnitude, UE4M3 by their code.
#include <halfscope/kernel/block/detail/block_scaler.hpp>

#include <cmath>
#include <deque>
#include <mutex>

#include <halfscope/format/detail/scale_arithmetic.hpp>
#include <halfscope/kernel/block/detail/segment.hpp>

namespace halfscope::detail {
namespace {

/// The code that a rule gives a block, by the bits of its largest magnitude.
struct CodeOfMagnitude {
  const ScaleRule& rule;
  const FloatFormat& element;

  [[nodiscard]] std::uint32_t operator()(std::uint32_t magnitude) const {
    return rule.scales({.amax = from_bits(magnitude), .element = element}).first.code;
  }
};

/// The first number from `first` to `last` whose code is that of `last`; that of `first` is smaller.
std::uint32_t first_of_last_code(std::uint32_t first, std::uint32_t last, const CodeOfMagnitude& code) {
  const std::uint32_t wanted = code(last);
  while (last - first > 1) {
    const std::uint32_t middle = first + (last - first) / 2;
    (code(middle) == wanted ? last : first) = middle;
  }
  return last;
}

/// Nothing where a code grows by more than one within a binade.
std::optional<E8m0Steps> make_steps(const ScaleRule& rule, const FloatFormat& element) {
  E8m0Steps steps;
  const CodeOfMagnitude code{rule, element};
  for (std::uint32_t field = 0; field < steps.binades.size(); ++field) {
    const std::uint32_t first = field << 23, last = first + 0x7FFFFFu;
    E8m0Steps::Binade& binade = steps.binades[field];
    binade.code = code(first);
    // An infinity and a NaN make the scale NaN under every rule.
    if (first == infinity_bits || code(last) == binade.code) continue;
    if (code(last) != binade.code + 1) return std::nullopt;
    binade.next = first_of_last_code(first, last, code);
  }
  for (std::uint32_t i = 0; i < steps.scales.size(); ++i)
    steps.scales[i] = e8m0_scale(static_cast<int>(i) - static_cast<int>(e8m0::bias)).first;
  return steps;
}

/// The steps of a rule and its elements, made once; null where there are none.
const E8m0Steps* find_steps(const ScaleRule& rule, const FloatFormat& element) {
  struct Entry {
    const ScaleRule* rule;
    FloatFormat element;
    std::optional<E8m0Steps> steps;
  };
  static std::mutex mutex;
  static std::deque<Entry> entries;  // whose elements stay in their place
  const std::lock_guard lock(mutex);
  for (const Entry& entry : entries) {
    if (entry.rule == &rule && entry.element == element) return entry.steps ? &*entry.steps : nullptr;
  }
  const Entry& made = entries.emplace_back(Entry{&rule, element, make_steps(rule, element)});
  return made.steps ? &*made.steps : nullptr;
}

bool is_ordinary_scale(const BlockScale& scale, ScaleStep step) {
  const bool divides_by_zero = step == ScaleStep::divide && scale.factor == 0;
  return std::isfinite(scale.value) && std::isfinite(scale.factor) && !divides_by_zero;
}

}  // namespace

BlockScaler::BlockScaler(const BlockFormat& format, const TensorFactors& tensor)
    : rule_(format.rule), element_(format.element.format), tensor_(tensor) {
  if (rule_->scale == ScaleFormat::e8m0) {
    e8m0_ = find_steps(*rule_, element_);
    ordinary_codes_ = e8m0::nan_code;
  }
  for (const RuleSteps& rule : rules_in_steps)
    if (rule.scales == rule_->scales) ue4m3_ = rule.steps();
  if (!ue4m3_) return;
  for (std::uint32_t code = 0; code < by_code_.size(); ++code)
    by_code_[code] = ue4m3_block(decode(code, ue4m3), tensor, ue4m3_->factor);
  constexpr std::uint32_t nan = nan_code(ue4m3);
  const auto is_ordinary = [this](const BlockScale& scale) { return is_ordinary_scale(scale, rule_->step); };
  if (std::all_of(by_code_.begin(), by_code_.begin() + nan, is_ordinary)) ordinary_codes_ = nan;
}

bool BlockScaler::are_ordinary(std::span<const BlockMaxima> blocks,
                               std::span<const BlockScale> scales) const {
  std::uint32_t beyond = 0;  // its sign bit is set by what is not ordinary
  const BlockMaxima* const block = blocks.data();
#pragma omp simd reduction(| : beyond)
  for (std::size_t i = 0; i < blocks.size(); ++i) beyond |= block[i].any + (sign_bit - infinity_bits);
  if (ordinary_codes_ > 0) {
    const std::uint32_t least = sign_bit - ordinary_codes_;
    const BlockScale* const scale = scales.data();
#pragma omp simd reduction(| : beyond)
    for (std::size_t i = 0; i < scales.size(); ++i) beyond |= scale[i].code + least;
    return beyond < sign_bit;
  }
  const auto is_ordinary = [this](const BlockScale& scale) { return is_ordinary_scale(scale, rule_->step); };
  return beyond < sign_bit && std::ranges::all_of(scales, is_ordinary);
}

void BlockScaler::scale(std::span<const BlockMaxima> blocks, std::span<BlockScale> to) const {
  if (ue4m3_) return scale_by_quotients(blocks, to);
  if (e8m0_ != nullptr) {
    for (std::size_t i = 0; i < blocks.size(); ++i) to[i] = e8m0_->of(blocks[i].any);
    return;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    to[i] = rule_
                ->scales({.amax = from_bits(blocks[i].number),
                          .has_nan = blocks[i].any > infinity_bits,
                          .element = element_,
                          .tensor = tensor_})
                .first;
  }
}

void BlockScaler::scale_by_quotients(std::span<const BlockMaxima> blocks, std::span<BlockScale> to) const {
  constexpr std::size_t part = 64;
  std::array<float, part> amax, quotients;
  std::array<std::uint32_t, part> codes;
  for (std::size_t at = 0; at < blocks.size(); at += part) {
    const std::size_t count = std::min(part, blocks.size() - at);
    const BlockMaxima* const block = blocks.data() + at;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) amax[i] = from_bits(block[i].number);
    ue4m3_->quotients(std::span(amax).first(count), tensor_, std::span(quotients).first(count));
    nearest_ue4m3(std::span(quotients).first(count), codes);
    for (std::size_t i = 0; i < count; ++i) to[at + i] = by_code_[codes[i]];
  }
}

}  // namespace halfscope::detail
