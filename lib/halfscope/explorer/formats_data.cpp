// Collects counts by format and renders them as JSON.
#include <halfscope/explorer/formats_data.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/explorer/detail/format_json.hpp>

namespace halfscope {
namespace {

struct NamedCounter {
  std::string_view name;
  std::int64_t BlockCounts::*member;
};
/// In the order of a cell's counters.
constexpr std::array named_counters{
    NamedCounter{"elements", &BlockCounts::elements},
    NamedCounter{"zeros", &BlockCounts::zeros},
    NamedCounter{"nonfinite", &BlockCounts::nonfinite},
    NamedCounter{"lost", &BlockCounts::lost},
    NamedCounter{"flushed", &BlockCounts::flushed},
    NamedCounter{"flushed_by_scale", &BlockCounts::flushed_by_scale},
    NamedCounter{"subnormal", &BlockCounts::subnormal},
    NamedCounter{"clipped", &BlockCounts::clipped},
    NamedCounter{"overflow", &BlockCounts::overflow},
    NamedCounter{"blocks", &BlockCounts::blocks},
    NamedCounter{"zero_blocks", &BlockCounts::zero_blocks},
    NamedCounter{"nonfinite_blocks", &BlockCounts::nonfinite_blocks},
    NamedCounter{"clipped_blocks", &BlockCounts::clipped_blocks},
    NamedCounter{"overflow_blocks", &BlockCounts::overflow_blocks},
    NamedCounter{"blocks_at_risk", &BlockCounts::blocks_at_risk},
    NamedCounter{"zero_scales", &BlockCounts::zero_scales},
    NamedCounter{"least_scales", &BlockCounts::least_scales},
    NamedCounter{"largest_scales", &BlockCounts::largest_scales},
    NamedCounter{"nan_scales", &BlockCounts::nan_scales},
};

/// The format with the first rule of its scale format, which a family of rules is called by.
BlockFormat family_of(BlockFormat format) {
  format.rule = std::ranges::find(scale_rules, format.scale(), &ScaleRule::scale);
  return format;
}

/// "2^-3", "0.4375" or "NaN": the number of a scale's code; FP32 scales by their binade.
std::string scale_label(std::uint32_t code, ScaleFormat format) {
  if (format == ScaleFormat::ue4m3) {
    const float number = decode_scale(code & 0x7Fu, format);
    return std::isnan(number) ? "NaN" : fmt::format("{}", number);
  }
  if (code == 255) return format == ScaleFormat::e8m0 ? "NaN" : "infinity or NaN";
  if (code == 0 && format == ScaleFormat::fp32) return "0 or subnormal";
  return fmt::format("2^{}", static_cast<int>(code) - 127);
}

Json scale_json(ScaleFormat format) {
  constexpr std::uint32_t codes = 256;
  Json labels = Json::array();
  for (std::uint32_t code = 0; code < codes; ++code) labels.push_back(scale_label(code, format));
  return {{"labels", labels}, {"is_binade", format == ScaleFormat::fp32}};
}

Json block_json(const BlockFormat& format) {
  return {{"family", to_string(family_of(format))},
          {"rule", format.rule->name},
          {"summary", format.rule->summary},
          {"scale", name_of(format.scale())},
          {"block", fmt::format("{} x {}", format.block.rows, format.block.columns)},
          {"has_tensor_scale", format.tensor_scale == TensorScale::fp32}};
}

Json choice_json(const FormatsData& data, std::size_t index) {
  const TensorFormat& format = data.formats()[index];
  const float largest = largest_element(format);
  Json json{{"name", to_string(format)}, {"family", to_string(format)}, {"rule", Json()}, {"scale", Json()}};
  if (const auto* block = std::get_if<BlockFormat>(&format)) json.update(block_json(*block));
  json["bits"] = data.bits_per_element(index);
  json["element"] = detail::format_json(element_format(format));
  json["largest"] = largest;
  json["largest_log2"] = std::log2(largest);
  return json;
}

/// Index and count, one after the other, of what is not zero.
Json pairs_of(std::span<const std::int64_t> counts, int first) {
  Json list = Json::array();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    list.push_back(static_cast<int>(i) + first);
    list.push_back(counts[i]);
  }
  return list;
}

/// Counters, relative error and dB (null where finite values become NaN, and without error), codes of scales
/// and exponents as pairs, the tensor's scale.
Json counts_json(const BlockCounts& counts, const std::optional<int>& scale_log2) {
  Json numbers = Json::array();
  for (const NamedCounter& counter : named_counters) numbers.push_back(counts.*counter.member);
  const double error = relative_error(counts), db = decibels(error);
  return Json::array({numbers, std::isfinite(error) ? Json(error) : Json(),
                      std::isfinite(db) ? Json(db) : Json(), pairs_of(counts.scale_codes, 0),
                      pairs_of(counts.exponents, BlockCounts::first_exponent),
                      scale_log2 ? Json(*scale_log2) : Json()});
}

Json tensor_counts_json(const FormatsOfTensor& tensor) {
  Json cells = Json::array();
  for (const FormatCounts& found : tensor.counts)
    cells.push_back(counts_json(found.counts, found.scale_log2));
  return {{"name", tensor.name},
          {"rows", tensor.matrix.rows},
          {"columns", tensor.matrix.columns},
          {"cells", cells}};
}

Json scales_json(const std::vector<TensorFormat>& formats) {
  Json scales = Json::object();
  for (const TensorFormat& format : formats) {
    const auto* block = std::get_if<BlockFormat>(&format);
    if (block != nullptr) scales[std::string(name_of(block->scale()))] = scale_json(block->scale());
  }
  return scales;
}

}  // namespace

std::vector<TensorFormat> with_all_rules(std::span<const TensorFormat> formats) {
  std::vector<TensorFormat> all;
  for (const TensorFormat& format : formats) append_new(format, all);
  const std::size_t given = all.size();
  for (std::size_t i = 0; i < given; ++i) {
    const auto* block = std::get_if<BlockFormat>(&all[i]);
    if (block == nullptr) continue;
    BlockFormat other = *block;
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != other.scale() || rule.choice != ScaleChoice::single) continue;
      other.rule = &rule;
      append_new(other, all);
    }
  }
  return all;
}

FormatsData::FormatsData(std::vector<TensorFormat> formats)
    : formats_(std::move(formats)), sums_(formats_.size()), bits_(formats_.size()) {
  if (formats_.empty()) throw InvalidArgument("the explorer of formats needs a format");
}

void FormatsData::add(FormatsOfTensor tensor) {
  if (tensor.counts.size() != formats_.size()) {
    throw InvalidArgument(fmt::format("'{}' was counted for {} formats, not for {}", tensor.name,
                                      tensor.counts.size(), formats_.size()));
  }
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    const BlockCounts& counts = tensor.counts[i].counts;
    sums_[i].merge(counts);
    bits_[i] += stored_bits(formats_[i], counts.elements, counts.blocks);
  }
  tensors_.push_back(std::move(tensor));
}

void FormatsData::start_at(const TensorFormat& format) {
  const auto found = std::ranges::find(formats_, format);
  if (found == formats_.end())
    throw InvalidArgument(fmt::format("'{}' is none of the explorer's formats", to_string(format)));
  start_ = static_cast<std::size_t>(found - formats_.begin());
}

double FormatsData::bits_per_element(std::size_t format) const {
  const std::int64_t elements = sums_[format].elements;
  return elements == 0 ? 0 : static_cast<double>(bits_[format]) / static_cast<double>(elements);
}

std::string formats_explorer_json(const FormatsData& data) {
  Json formats = Json::array(), counters = Json::array(), sums = Json::array(), tensors = Json::array();
  for (std::size_t i = 0; i < data.formats().size(); ++i) {
    formats.push_back(choice_json(data, i));
    sums.push_back(counts_json(data.sums()[i], std::nullopt));
  }
  for (const NamedCounter& counter : named_counters) counters.push_back(counter.name);
  for (const FormatsOfTensor& tensor : data.tensors()) tensors.push_back(tensor_counts_json(tensor));
  return detail::script_json({{"formats", formats},
                              {"scales", scales_json(data.formats())},
                              {"counters", counters},
                              {"sums", sums},
                              {"tensors", tensors},
                              {"start", to_string(data.formats()[data.start()])}});
}

}  // namespace halfscope
