// Dequantizes a step at a time; of the scales it holds those of the rows that are read.
#include <halfscope/io/layouts/detail/scaled_codes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t step_codes = 16384;  // as TensorFile::read promises

class ScaledCodes : public QuantizedTensor {
 public:
  ScaledCodes(ScaledParts parts, const BlockLayout& layout)
      : QuantizedTensor(std::move(parts.name), std::move(parts.shape)),
        payload_(std::move(parts.payload)),
        scales_(std::move(parts.scales)),
        whole_(std::move(parts.whole)),
        layout_(layout) {}

  void read(const TensorFile& file, std::int64_t first, std::span<float> values) const override {
    go_over(file, first, std::ssize(values),
            [&](std::span<const float> codes, const ScaleRange& scales, std::int64_t element) {
              for (const float code : codes) {
                values.front() = value_of(code, scales.at(block_of(element++)));
                values = values.subspan(1);
              }
            });
  }

  CodeKind kind() const override {
    CodeKind kind{.bits = payload_.type != nullptr ? payload_.type->bits : 8};
    if (layout_.block_rows != 1) return kind;
    kind.inputs = layout_.columns;
    kind.groups = layout_.scale_columns;
    return kind;
  }

  BlockFindings findings(const TensorFile& file) const override {
    std::vector<float> scales(static_cast<std::size_t>(scales_.elements()));
    scales_.read(file, 0, scales);
    const std::vector<float> codes = largest_codes(file, scales.size());
    BlockFindings found{.layout = layout_words(), .blocks = std::ssize(scales), .whole_scale = whole_};
    for (std::size_t i = 0; i < scales.size(); ++i)
      judge_block({static_cast<std::int64_t>(i), codes[i], scales[i]}, {payload_.largest, scales_.largest},
                  found);
    if (!whole_ && scales.size() == 1 && scales_.type == nullptr) found.single_scale = scales[0];
    if (!whole_ || whole_->factor() == 1) found.relations = relations_of(scales, codes);
    // Scales of few bits are of other blocks, or powers of two by their type: that all are 1 is a relation.
    if (found.relations && (whole_ || scales_.type != nullptr))
      found.relations = ScaleRelations{.all_ones = found.relations->all_ones,
                                       .largest_code = found.relations->largest_code};
    return found;
  }

  std::vector<double> limits(const TensorFile& file) const override {
    std::vector<float> scales(static_cast<std::size_t>(scales_.elements()));
    scales_.read(file, 0, scales);
    std::vector<double> limits;
    for (const float scale : scales)
      limits.push_back(std::abs(double{payload_.limit} * (whole_ ? whole_->factor() : 1.0f) * double{scale}));
    return limits;
  }

  std::int64_t block_of(std::int64_t element) const override {
    return layout_.scale_of(element / layout_.columns, element % layout_.columns);
  }

 private:
  [[nodiscard]] ScaleRelations relations_of(std::span<const float> scales,
                                            std::span<const float> codes) const {
    constexpr int enough = 4;  // largest codes in as many blocks are no chance
    ScaleRelations found{.all_ones = !scales.empty(), .are_powers = !scales.empty()};
    int full = 0, others = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      int exponent = 0;
      const double fraction =
          std::isfinite(scales[i]) ? std::frexp(std::abs(double{scales[i]}), &exponent) : 0;
      found.all_ones = found.all_ones && scales[i] == 1;
      found.are_powers = found.are_powers && fraction == 0.5;
      found.largest_code = std::max(found.largest_code, codes[i]);
      if (fraction > 0.5) found.largest_step = std::max(found.largest_step, 1 / fraction);
      full += codes[i] == payload_.largest ? 1 : 0;
      others += codes[i] != 0 && codes[i] != payload_.largest ? 1 : 0;
    }
    found.all_reach_largest = full >= enough && others == 0;
    return found;
  }

  /// In the order in which the libraries of the two kinds of scales multiply.
  [[nodiscard]] float value_of(float code, float scale) const {
    if (!whole_) return code * scale;
    return whole_->divides ? code * (scale / whole_->value) : code * scale * whole_->value;
  }

  /// The scales of rows [first, last].
  [[nodiscard]] ScaleRange scales_of_rows(const TensorFile& file, std::int64_t first,
                                          std::int64_t last) const {
    ScaleRange range{layout_.scale_of(first, 0)};
    const std::int64_t end = layout_.scale_of(last, layout_.columns - 1) + 1;
    range.values.resize(static_cast<std::size_t>(end - range.first));
    scales_.read(file, range.first, range.values);
    return range;
  }

  /// Goes over elements [first, first + count) in steps: take(codes, scales, place of the first).
  template <typename Take>
  void go_over(const TensorFile& file, std::int64_t first, std::int64_t count, Take&& take) const {
    std::array<float, step_codes> buffer;
    for (const std::int64_t end = first + count; first < end;) {
      const auto codes = std::span(buffer).first(static_cast<std::size_t>(std::min(step_codes, end - first)));
      const std::int64_t last = first + std::ssize(codes) - 1;
      payload_.read(file, first, codes);
      take(codes, scales_of_rows(file, first / layout_.columns, last / layout_.columns), first);
      first = last + 1;
    }
  }

  /// The largest code of each block; infinite where one is NaN or infinite.
  [[nodiscard]] std::vector<float> largest_codes(const TensorFile& file, std::size_t blocks) const {
    std::vector<float> largest(blocks, 0.0f);
    go_over(file, 0, stored().elements,
            [&](std::span<const float> codes, const ScaleRange&, std::int64_t first) {
              for (const float code : codes) {
                float& found = largest[static_cast<std::size_t>(block_of(first++))];
                found = std::max(found, std::isfinite(code) ? std::abs(code) : HUGE_VALF);
              }
            });
    return largest;
  }

  [[nodiscard]] std::string layout_words() const {
    std::string words = fmt::format("{} in blocks of {} x {}, scales {}", payload_.type_name,
                                    layout_.block_rows, layout_.block_columns, scales_.type_name);
    if (whole_) words += fmt::format(" {} {:g}", whole_->divides ? "over" : "times", whole_->value);
    return words;
  }

  CodeSource payload_, scales_;
  std::optional<WholeScale> whole_;
  BlockLayout layout_;
};

/// Takes DeepSeek's blocks from the model's configuration, where the shapes allow several.
void apply_stated_block(FileParts& parts, const ScaledParts& tensor, BlockLayout& layout) {
  const auto [rows, columns] = *parts.reading().stated.block;
  if (blocks_fit(tensor.shape, tensor.scales.shape, rows, columns)) {
    layout.block_rows = rows;
    layout.block_columns = columns;
    return;
  }
  parts.note(
      tensor.name,
      fmt::format("has scales of shape {}, of blocks of {} x {}, and is read so; config.json says "
                  "weight_block_size [{}, {}]: correct config.json, or quantize again",
                  to_string(tensor.scales.shape), layout.block_rows, layout.block_columns, rows, columns));
}

}  // namespace

void add_scaled_codes(FileParts& parts, ScaledParts tensor) {
  for (const std::string* name : {&tensor.payload.name, &tensor.scales.name}) parts.take(*name);
  if (tensor.whole) parts.take(tensor.whole->name);
  auto layout = fit_blocks(tensor.shape, tensor.scales.shape);
  if (!layout)
    return parts.refuse(
        tensor.name,
        fmt::format("scales {} of shape {} do not fit its shape {}; a scale for each block of rows "
                    "and columns would",
                    excerpt(tensor.scales.name), to_string(tensor.scales.shape), to_string(tensor.shape)));
  if (parts.reading().stated.block && tensor.scales.name.ends_with("_scale_inv"))
    apply_stated_block(parts, tensor, *layout);
  parts.add(std::make_unique<ScaledCodes>(std::move(tensor), *layout));
}

std::optional<float> read_one_number(FileParts& parts, const CodeSource& source) {
  if (source.elements() != 1) return std::nullopt;
  float value = 0;
  source.read(parts.file(), 0, {&value, 1});
  return value;
}

}  // namespace halfscope
