// Shows a file by its layouts: the tensors that they read, and the others as they are stored.
#include <halfscope/io/quantized_file.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/detail/file_pair.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t step_elements = 16384;  // as TensorFile::read promises

/// Bytes that are packed FP4 or E8M0 by their name, where every part of a file is shown for itself.
std::string_view byte_type_of(const FileParts& parts, const StoredCodes& codes) {
  const std::string_view name = codes.name;
  if (name.ends_with("_scales") || name.ends_with("_scale") || name.ends_with("_scale_inv")) return "F8_E8M0";
  if (name.ends_with("_blocks")) return "F4";
  const std::string scale = codes.name + "_scale";
  const FileBeside& beside = parts.reading().beside;
  const bool is_payload = parts.holds(scale) || (beside && beside(scale, codes.name));
  return is_payload ? "F4" : std::string_view();
}

/// Numbers of a tensor that is not stored so, a step at a time.
template <typename Read>
void hand_over(std::int64_t first, std::int64_t count, const StoredSink& sink, Read&& read) {
  std::vector<float> values(static_cast<std::size_t>(std::min(step_elements, count)));
  for (const std::int64_t end = first + count; first < end;) {
    const auto step = std::span(values).first(static_cast<std::size_t>(std::min(step_elements, end - first)));
    read(first, step);
    sink(std::as_bytes(step));
    first += std::ssize(step);
  }
}

class ShownFile : public QuantizedFile {
 public:
  ShownFile(std::unique_ptr<TensorFile> file, const std::string& name, const QuantizedReading& reading)
      : file_(std::move(file)), name_(name), reading_(reading), parts_(*file_, name_, reading_) {
    if (reading_.view == QuantizedView::values)
      for (const QuantizedLayout& layout : quantized_layouts) layout.read(parts_);
    std::set<std::string> left_out = parts_.taken();
    const std::size_t most = parts_.tensors().size() + file_->tensors().size();
    tensors_.reserve(most);  // a list that grows is in memory twice
    origins_.reserve(most);
    for (const auto& tensor : parts_.tensors()) {
      left_out.insert(tensor->stored().name);
      tensors_.push_back(tensor->stored());
      origins_.push_back({tensor.get(), {}, 0});
    }
    for (std::size_t i = 0; i < file_->tensors().size(); ++i) pass_on(i, left_out);
    for (const StoredCodes& codes : file_->codes()) show_codes(codes, left_out);
    for (const SkippedTensor& skipped : file_->skipped())
      if (!left_out.contains(skipped.name)) skipped_.push_back(skipped);
    reading_.beside = nullptr;  // it looks through what the caller has
    parts_.forget_names();
  }

  const std::vector<std::string>& problems() const override { return parts_.problems(); }
  const std::vector<std::string>& unread() const override { return parts_.unread(); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  const std::vector<SkippedTensor>& skipped() const override { return skipped_; }

  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    check_range(tensors_.at(index), first, count);
    const Origin& origin = origins_[index];
    if (origin.quantized != nullptr)
      return hand_over(first, count, sink, [&](std::int64_t at, std::span<float> values) {
        origin.quantized->read(*file_, at, values);
      });
    if (!origin.codes) return file_->read_stored(origin.index, first, count, sink);
    hand_over(first, count, sink,
              [&](std::int64_t at, std::span<float> values) { origin.codes->read(*file_, at, values); });
  }

  bool has_blocks(std::size_t index) const override { return origins_.at(index).quantized != nullptr; }

  BlockFindings findings(std::size_t index, const std::optional<TensorInFile>& original) const override {
    const QuantizedTensor& tensor = *origins_.at(index).quantized;
    BlockFindings found = tensor.findings(*file_);
    if (original) compare(index, *original, found);
    return found;
  }

 private:
  /// Source of a tensor that is shown: a quantized one, codes, or tensor `index` of the file.
  struct Origin {
    const QuantizedTensor* quantized = nullptr;
    std::unique_ptr<const CodeSource> codes{};
    std::size_t index = 0;
  };

  void pass_on(std::size_t index, const std::set<std::string>& left_out) {
    const StoredTensor& tensor = file_->tensors()[index];
    if (left_out.contains(tensor.name)) return;
    tensors_.push_back(tensor);
    origins_.push_back({nullptr, {}, index});
  }

  void show_codes(const StoredCodes& codes, std::set<std::string>& left_out) {
    if (left_out.contains(codes.name)) return;
    auto source = source_of(codes, byte_type_of(parts_, codes));
    if (!source) return;
    left_out.insert(codes.name);  // no longer a skipped one
    tensors_.push_back({codes.name, DType::f32, source->shape, source->elements()});
    origins_.push_back({nullptr, std::make_unique<const CodeSource>(std::move(*source)), 0});
  }

  /// Sums of one block beside the original.
  struct BlockBeside {
    float largest = 0;               ///< magnitude of the original
    double product = 0, square = 0;  ///< sums over both, and over the original
  };

  /// Values that became zero, blocks that clip, and blocks that grew.
  void compare(std::size_t index, const TensorInFile& original, BlockFindings& found) const {
    const QuantizedTensor& tensor = *origins_[index].quantized;
    const std::vector<double> limits = tensor.limits(*file_);
    std::vector<BlockBeside> blocks(limits.size());
    std::int64_t flushed = 0;
    const TensorPair pair({*this, index, "the file"}, original);
    for (const TensorPart& part : pair.parts()) {
      std::int64_t element = part.first;
      pair.read(part, [&](std::span<const float> values, std::span<const float> originals) {
        for (std::size_t i = 0; i < values.size(); ++i, ++element) {
          const float o = originals[i];
          if (o != 0 && !std::isnan(o)) ++found.nonzero;
          if (o != 0 && values[i] == 0) ++flushed;
          if (blocks.empty()) continue;
          BlockBeside& block = blocks[static_cast<std::size_t>(tensor.block_of(element))];
          block.largest = std::max(block.largest, std::abs(o));
          block.product += double{values[i]} * double{o};
          block.square += double{o} * double{o};
        }
      });
    }
    found.flushed = flushed;
    if (!blocks.empty()) judge_beside(blocks, limits, found);
  }

  static void judge_beside(std::span<const BlockBeside> blocks, std::span<const double> limits,
                           BlockFindings& found) {
    found.clipped.emplace();
    std::vector<double> growths;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (double{blocks[i].largest} > limits[i]) found.clipped->add(static_cast<std::int64_t>(i));
      const double growth = blocks[i].product / blocks[i].square;
      if (std::isfinite(growth)) growths.push_back(growth);
    }
    if (growths.empty()) return;
    const auto middle = growths.begin() + std::ssize(growths) / 2;
    std::ranges::nth_element(growths, middle);
    found.growth = *middle;
  }

  std::unique_ptr<TensorFile> file_;
  std::string name_;
  QuantizedReading reading_;
  FileParts parts_;
  std::vector<StoredTensor> tensors_{};
  std::vector<SkippedTensor> skipped_{};
  std::vector<Origin> origins_{};  // origins of tensors_
};

}  // namespace

std::unique_ptr<QuantizedFile> show_quantized(std::unique_ptr<TensorFile> file, const std::string& name,
                                              const QuantizedReading& reading) {
  return std::make_unique<ShownFile>(std::move(file), name, reading);
}

}  // namespace halfscope
