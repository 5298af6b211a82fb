// Blocks of tensors, summarised side by side and merged in order.
#include <halfscope/passes/file_summary.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <variant>

#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/stats/detail/code_summary.hpp>

namespace halfscope {
namespace {

/// Elements of a part whose codes are counted: enough for its tables not to weigh.
constexpr std::int64_t coded_block = 8 * summarise_block;

/// In a tensor smaller than a table of 16-bit codes the elements themselves are the shorter way.
bool counts_codes(const StoredTensor& tensor) {
  return has_few_codes(tensor.type) && tensor.elements >= 1 << 16;
}

/// Summary of a part of a tensor, or the error if its file is damaged there.
struct PartFound {
  std::variant<TensorSummary, CodeCounts, std::exception_ptr> found;
  std::int64_t beyond_fp32 = 0;
};

/// A part of a tensor of file `file`.
struct FilePart : TensorPart {
  std::size_t file = 0;
};

std::int64_t count_beyond_fp32(std::span<const std::byte> doubles) {
  constexpr double largest = std::numeric_limits<float>::max(), smallest = 0x1p-149;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < doubles.size(); at += sizeof(double)) {
    double x = 0;
    std::memcpy(&x, doubles.data() + at, sizeof x);
    x = std::fabs(x);
    count += (x > largest && x <= std::numeric_limits<double>::max()) || (x > 0 && x < smallest) ? 1 : 0;
  }
  return count;
}

PartFound summarise_doubles(const TensorFile& file, const TensorPart& part, const FloatFormat& format) {
  SummaryPass pass(format);
  std::int64_t beyond = 0;
  std::array<float, 4096> floats;
  file.read_stored(part.tensor, part.first, part.count, [&](std::span<const std::byte> piece) {
    beyond += count_beyond_fp32(piece);
    for (std::size_t left = piece.size() / sizeof(double); left > 0;) {
      const auto step = std::span(floats).first(std::min(floats.size(), left));
      widen(DType::f64, piece.data() + piece.size() - left * sizeof(double), step);
      pass.add(step);
      left -= step.size();
    }
  });
  return {pass.summary(), beyond};
}

PartFound summarise_part(const TensorFile& file, const TensorPart& part, const FloatFormat& format) {
  const StoredTensor& tensor = file.tensors()[part.tensor];
  if (counts_codes(tensor)) {
    CodeCounts codes(bytes_per_element(tensor.type));
    file.read_stored(part.tensor, part.first, part.count,
                     [&](std::span<const std::byte> piece) { codes.add(piece); });
    return {std::move(codes)};
  }
  if (tensor.type == DType::f64) return summarise_doubles(file, part, format);
  SummaryPass pass(format);
  file.read(part.tensor, part.first, part.count, [&](std::span<const float> piece) { pass.add(piece); });
  return {pass.summary()};
}

/// Takes in the parts of one tensor.
class WholeTensor {
 public:
  WholeTensor(const StoredTensor& tensor, const FloatFormat& format) : type_(tensor.type), summary_(format) {}

  void add(PartFound&& part) {
    beyond_fp32_ += part.beyond_fp32;
    if (const auto* summary = std::get_if<TensorSummary>(&part.found)) return summary_.merge(*summary);
    auto& codes = std::get<CodeCounts>(part.found);
    codes_ ? codes_->merge(codes) : static_cast<void>(codes_ = std::move(codes));
  }
  [[nodiscard]] std::int64_t beyond_fp32() const { return beyond_fp32_; }
  [[nodiscard]] TensorSummary summary() {
    if (!codes_) return summary_;
    codes_->settle();
    return summarise_codes(*codes_, type_, summary_.histogram().format());
  }

 private:
  DType type_;
  TensorSummary summary_;
  std::optional<CodeCounts> codes_;
  std::int64_t beyond_fp32_ = 0;
};

std::vector<FilePart> parts_of(std::span<const ChosenTensors> files) {
  std::vector<FilePart> parts;
  std::vector<TensorPart> of_tensor;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const std::size_t index : files[file].tensors) {
      const StoredTensor& tensor = files[file].file->tensors().at(index);
      of_tensor.clear();
      append_parts(index, tensor, counts_codes(tensor) ? coded_block : summarise_block, of_tensor);
      for (const TensorPart& part : of_tensor) parts.push_back({part, file});
    }
  }
  return parts;
}

/// Puts the parts together as they come, in order, and tells the sink.
class FilesInOrder {
 public:
  FilesInOrder(std::span<const ChosenTensors> files, const FloatFormat& format, const FilesSink& sink)
      : files_(files), format_(format), sink_(sink) {}

  void take(const FilePart& part, PartFound&& found) {
    if (sink_.progress) sink_.progress(part.file, part.count);
    if (failed_ == part.file) return;
    if (const auto* error = std::get_if<std::exception_ptr>(&found.found)) {
      failed_ = part.file;
      whole_.reset();
      return sink_.failed(part.file, *error);
    }
    const StoredTensor& tensor = files_[part.file].file->tensors()[part.tensor];
    if (!whole_) whole_.emplace(tensor, format_);
    whole_->add(std::move(found));
    if (part.first + part.count < tensor.elements) return;
    const TensorSummary summary = whole_->summary();
    sink_.tensor({part.file, part.tensor, &summary, whole_->beyond_fp32()});
    whole_.reset();
  }

 private:
  std::span<const ChosenTensors> files_;
  FloatFormat format_;
  const FilesSink& sink_;
  std::optional<WholeTensor> whole_;
  std::optional<std::size_t> failed_;  ///< the last file that did
};

}  // namespace

void summarise_files(std::span<const ChosenTensors> files, const FloatFormat& format, const FilesSink& sink) {
  const std::vector<FilePart> parts = parts_of(files);
  FilesInOrder in_order(files, format, sink);
  const auto work = [&](const FilePart& part) -> PartFound {
    try {
      return summarise_part(*files[part.file].file, part, format);
    } catch (...) {
      return {std::current_exception()};
    }
  };
  work_through(std::span<const FilePart>(parts), work,
               [&](const FilePart& part, PartFound&& found) { in_order.take(part, std::move(found)); });
}

void summarise_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                       const SummarySink& sink, const ElementProgress& progress) {
  const ChosenTensors all{&file, chosen};
  FilesSink files{
      .tensor = [&](const SummarisedTensor& found) { sink(found.index, *found.summary); },
      .failed = [](std::size_t, const std::exception_ptr& error) { std::rethrow_exception(error); },
      .progress = {}};
  if (progress) files.progress = [&](std::size_t, std::int64_t elements) { progress(elements); };
  summarise_files({&all, 1}, format, files);
}

}  // namespace halfscope
