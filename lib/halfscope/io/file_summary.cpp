// Blocks of tensors, summarised side by side and merged in order.
#include <halfscope/io/file_summary.hpp>

#include <variant>

#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/stats/code_summary.hpp>

namespace halfscope {
namespace {

/// Elements of a part whose codes are counted: enough for its tables not to weigh.
constexpr std::int64_t coded_block = 8 * summarise_block;

/// In a tensor smaller than a table of 16-bit codes the elements themselves are the shorter way.
bool counts_codes(const StoredTensor& tensor) {
  return has_few_codes(tensor.type) && tensor.elements >= 1 << 16;
}

using PartFound = std::variant<TensorSummary, CodeCounts>;

PartFound summarise_part(const TensorFile& file, const TensorPart& part, const FloatFormat& format) {
  const StoredTensor& tensor = file.tensors()[part.tensor];
  if (counts_codes(tensor)) {
    CodeCounts codes(bytes_per_element(tensor.type));
    file.read_stored(part.tensor, part.first, part.count,
                     [&](std::span<const std::byte> piece) { codes.add(piece); });
    return codes;
  }
  SummaryPass pass(format);
  file.read(part.tensor, part.first, part.count, [&](std::span<const float> piece) { pass.add(piece); });
  return pass.summary();
}

/// Takes in the parts of one tensor.
class WholeTensor {
 public:
  WholeTensor(const StoredTensor& tensor, const FloatFormat& format) : type_(tensor.type), summary_(format) {}

  void add(PartFound&& part) {
    if (const auto* summary = std::get_if<TensorSummary>(&part)) return summary_.merge(*summary);
    auto& codes = std::get<CodeCounts>(part);
    codes_ ? codes_->merge(codes) : static_cast<void>(codes_ = std::move(codes));
  }
  [[nodiscard]] TensorSummary summary() {
    if (!codes_) return summary_;
    codes_->settle();
    return summarise_codes(*codes_, type_, summary_.histogram().format());
  }

 private:
  DType type_;
  TensorSummary summary_;
  std::optional<CodeCounts> codes_;
};

}  // namespace

void summarise_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                       const SummarySink& sink, const ElementProgress& progress) {
  std::vector<TensorPart> parts;
  for (const std::size_t index : chosen) {
    const StoredTensor& tensor = file.tensors().at(index);
    append_parts(index, tensor, counts_codes(tensor) ? coded_block : summarise_block, parts);
  }
  std::optional<WholeTensor> whole;
  const auto work = [&](const TensorPart& part) { return summarise_part(file, part, format); };
  work_through(parts, work, [&](const TensorPart& part, PartFound&& found) {
    const StoredTensor& tensor = file.tensors()[part.tensor];
    if (!whole) whole.emplace(tensor, format);
    whole->add(std::move(found));
    if (progress) progress(part.count);
    if (part.first + part.count < tensor.elements) return;
    sink(part.tensor, whole->summary());
    whole.reset();
  });
}

}  // namespace halfscope
