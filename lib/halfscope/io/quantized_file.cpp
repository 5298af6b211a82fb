// Dequantizes a step at a time; of the scales it holds those of the rows that are read.
#include <halfscope/io/quantized_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/detail/file_pair.hpp>
#include <halfscope/io/detail/quantized_names.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t step_elements = 16384;  // as TensorFile::read promises

/// Consecutive scales of a tensor, by their index in all of it.
struct ScaleRange {
  std::int64_t first = 0;
  std::vector<float> values;
  [[nodiscard]] float at(std::int64_t index) const { return values[static_cast<std::size_t>(index - first)]; }
};

/// The scales of `tensor`'s rows [first, last].
ScaleRange scales_of_rows(const TensorFile& file, const QuantizedTensor& tensor, std::int64_t first,
                          std::int64_t last) {
  ScaleRange range{tensor.layout.scale_of(first, 0), {}};
  const std::int64_t end = tensor.layout.scale_of(last, tensor.layout.columns - 1) + 1;
  range.values.resize(static_cast<std::size_t>(end - range.first));
  tensor.scales.read(file, range.first, range.values);
  return range;
}

/// Goes over elements [first, first + count) in steps: take(codes, scales, place of the first).
template <typename Take>
void go_over(const TensorFile& file, const QuantizedTensor& tensor, std::int64_t first, std::int64_t count,
             Take&& take) {
  std::array<float, step_elements> buffer;
  for (const std::int64_t end = first + count; first < end;) {
    const auto codes =
        std::span(buffer).first(static_cast<std::size_t>(std::min(step_elements, end - first)));
    const std::int64_t last = first + static_cast<std::int64_t>(codes.size()) - 1;
    tensor.payload.read(file, first, codes);
    const std::int64_t columns = tensor.layout.columns;
    take(codes, scales_of_rows(file, tensor, first / columns, last / columns), first);
    first = last + 1;
  }
}

std::int64_t scale_of(const BlockLayout& layout, std::int64_t element) {
  return layout.scale_of(element / layout.columns, element % layout.columns);
}

/// The largest code of each block; infinite where one is NaN or infinite.
std::vector<float> largest_codes(const TensorFile& file, const QuantizedTensor& tensor, std::int64_t elements,
                                 std::int64_t blocks) {
  std::vector<float> largest(static_cast<std::size_t>(blocks), 0.0f);
  go_over(file, tensor, 0, elements,
          [&](std::span<const float> codes, const ScaleRange&, std::int64_t first) {
            for (const float code : codes) {
              float& found = largest[static_cast<std::size_t>(scale_of(tensor.layout, first++))];
              found = std::max(found, std::isfinite(code) ? std::abs(code) : HUGE_VALF);
            }
          });
  return largest;
}

/// max|x| of each block of `original`, which is held against `quantized`.
std::vector<float> largest_values(const TensorInFile& quantized, const TensorInFile& original,
                                  const BlockLayout& layout, std::int64_t blocks) {
  std::vector<float> largest(static_cast<std::size_t>(blocks), 0.0f);
  const TensorPair pair(quantized, original);
  for (const TensorPart& part : pair.parts()) {
    std::int64_t element = part.first;
    pair.read(part, [&](std::span<const float>, std::span<const float> values) {
      for (const float x : values) {
        float& found = largest[static_cast<std::size_t>(scale_of(layout, element++))];
        found = std::max(found, std::abs(x));
      }
    });
  }
  return largest;
}

void judge_block(const QuantizedTensor& tensor, std::int64_t block, float code, float scale,
                 BlockFindings& found) {
  const float most = tensor.payload.largest;
  if (code == 0) found.zero_blocks.add(block);
  if (!std::isfinite(code)) found.nan_codes.add(block);
  if (!std::isfinite(scale)) found.nan_scales.add(block);
  if (scale == 0 && code != 0) found.zero_scales.add(block);
  if (scale == tensor.scales.largest) found.saturated_scales.add(block);
  if (code == most) found.at_largest.add(block);
  if (code > 0 && code < most / 2) found.low.add(block);
}

std::string layout_words(const QuantizedTensor& tensor) {
  const BlockLayout& layout = tensor.layout;
  return fmt::format("{} in blocks of {} x {}, scales {}{}", tensor.payload.type_name, layout.block_rows,
                     layout.block_columns, tensor.scales.type_name,
                     tensor.tensor_scale ? fmt::format(" times {:g}", *tensor.tensor_scale) : "");
}

class ShownFile : public QuantizedFile {
 public:
  ShownFile(std::unique_ptr<TensorFile> file, QuantizedParts parts, const FileBeside& beside)
      : file_(std::move(file)), parts_(std::move(parts)) {
    for (const std::string& part : parts_.consumed) left_out_.insert(part);
    for (const QuantizedTensor& tensor : parts_.tensors) add(tensor.name, tensor.shape, {&tensor, {}, 0});
    for (std::size_t i = 0; i < file_->tensors().size(); ++i) pass_on(i);
    const NamesOfFile names(*file_);
    for (const StoredCodes& codes : file_->codes()) show_codes(codes, byte_type_of(names, codes, beside));
    for (const SkippedTensor& skipped : file_->skipped())
      if (!left_out_.contains(skipped.name)) skipped_.push_back(skipped);
  }

  const std::vector<std::string>& problems() const override { return parts_.problems; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  const std::vector<SkippedTensor>& skipped() const override { return skipped_; }

  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    check_range(tensors_.at(index), first, count);
    const Origin& origin = origins_[index];
    if (origin.quantized != nullptr) return read_values(*origin.quantized, first, count, sink);
    if (!origin.codes) return file_->read_stored(origin.index, first, count, sink);
    std::vector<float> values(static_cast<std::size_t>(std::min(step_elements, count)));
    for (const std::int64_t end = first + count; first < end;) {
      const auto step =
          std::span(values).first(static_cast<std::size_t>(std::min(step_elements, end - first)));
      origin.codes->read(*file_, first, step);
      sink(std::as_bytes(step));
      first += static_cast<std::int64_t>(step.size());
    }
  }

  bool has_blocks(std::size_t index) const override { return origins_.at(index).quantized != nullptr; }

  BlockFindings findings(std::size_t index, const std::optional<TensorInFile>& original) const override {
    const QuantizedTensor* const tensor = origins_.at(index).quantized;
    std::vector<float> scales(static_cast<std::size_t>(tensor->scales.elements()));
    tensor->scales.read(*file_, 0, scales);
    const std::vector<float> codes =
        largest_codes(*file_, *tensor, tensors_[index].elements, tensor->scales.elements());
    BlockFindings found;
    found.layout = layout_words(*tensor);
    found.has_tensor_scale = tensor->tensor_scale.has_value();
    found.blocks = tensor->scales.elements();
    for (std::size_t i = 0; i < scales.size(); ++i)
      judge_block(*tensor, static_cast<std::int64_t>(i), codes[i], scales[i], found);
    if (original) found.clipped = clipped_blocks(index, *original, scales);
    return found;
  }

 private:
  [[nodiscard]] BlockList clipped_blocks(std::size_t index, const TensorInFile& original,
                                         std::span<const float> scales) const {
    const QuantizedTensor& tensor = *origins_[index].quantized;
    const std::vector<float> values =
        largest_values({*this, index, "the file"}, original, tensor.layout, std::ssize(scales));
    const double most = double{tensor.payload.limit} * std::abs(tensor.tensor_scale.value_or(1.0f));
    BlockList clipped;
    for (std::size_t i = 0; i < scales.size(); ++i)
      if (double{values[i]} > most * std::abs(double{scales[i]})) clipped.add(static_cast<std::int64_t>(i));
    return clipped;
  }

  /// Source of a tensor that is shown: a quantized one, codes, or tensor `index` of the file.
  struct Origin {
    const QuantizedTensor* quantized = nullptr;
    std::optional<CodeSource> codes{};
    std::size_t index = 0;
  };

  void add(std::string name, std::vector<std::int64_t> shape, Origin origin) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    tensors_.push_back({std::move(name), DType::f32, std::move(shape), elements});
    origins_.push_back(std::move(origin));
  }

  void pass_on(std::size_t index) {
    const StoredTensor& tensor = file_->tensors()[index];
    if (left_out_.contains(tensor.name)) return;
    tensors_.push_back(tensor);
    origins_.push_back({nullptr, {}, index});
  }

  void show_codes(const StoredCodes& codes, std::string_view byte_type) {
    if (left_out_.contains(codes.name)) return;
    auto source = source_of(codes, byte_type);
    if (!source) return;
    left_out_.insert(codes.name);  // no longer a skipped one
    const std::vector<std::int64_t> shape = source->shape;
    add(codes.name, shape, {nullptr, std::move(source), 0});
  }

  void read_values(const QuantizedTensor& tensor, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const {
    const float factor = tensor.tensor_scale.value_or(1.0f);
    std::vector<float> values;
    go_over(*file_, tensor, first, count,
            [&](std::span<const float> codes, const ScaleRange& scales, std::int64_t element) {
              values.clear();
              for (const float code : codes)
                values.push_back(code * scales.at(scale_of(tensor.layout, element++)) * factor);
              sink(std::as_bytes(std::span(values)));
            });
  }

  std::unique_ptr<TensorFile> file_;
  QuantizedParts parts_;
  std::set<std::string> left_out_;  // names of the file that are not shown as they are stored
  std::vector<StoredTensor> tensors_;
  std::vector<SkippedTensor> skipped_;
  std::vector<Origin> origins_;  // origins of tensors_
};

}  // namespace

std::unique_ptr<QuantizedFile> show_quantized(std::unique_ptr<TensorFile> file, const std::string& name,
                                              const QuantizedReading& reading) {
  QuantizedParts parts;
  if (reading.view == QuantizedView::values) parts = find_quantized(*file, name, reading);
  return std::make_unique<ShownFile>(std::move(file), std::move(parts), reading.beside);
}

}  // namespace halfscope
