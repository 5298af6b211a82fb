// Blocks of tensors, surveyed side by side and merged in order.
#include <halfscope/io/survey_file.hpp>

#include <variant>

#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/stats/code_survey.hpp>

namespace halfscope {
namespace {

/// Elements of a part whose codes are counted: enough for its tables not to weigh.
constexpr std::int64_t coded_block = 8 * survey_block;

/// In a tensor smaller than a table of 16-bit codes the elements themselves are the shorter way.
bool counts_codes(const StoredTensor& tensor) {
  return has_few_codes(tensor.type) && tensor.elements >= 1 << 16;
}

using PartFound = std::variant<TensorSurvey, CodeCounts>;

PartFound survey_part(const TensorFile& file, const TensorPart& part, const FloatFormat& format) {
  const StoredTensor& tensor = file.tensors()[part.tensor];
  if (counts_codes(tensor)) {
    CodeCounts codes(bytes_per_element(tensor.type));
    file.read_stored(part.tensor, part.first, part.count,
                     [&](std::span<const std::byte> piece) { codes.add(piece); });
    return codes;
  }
  SurveyPass pass(format);
  file.read(part.tensor, part.first, part.count, [&](std::span<const float> piece) { pass.add(piece); });
  return pass.survey();
}

/// Takes in the parts of one tensor.
class WholeTensor {
 public:
  WholeTensor(const StoredTensor& tensor, const FloatFormat& format) : type_(tensor.type), survey_(format) {}

  void add(PartFound&& part) {
    if (const auto* survey = std::get_if<TensorSurvey>(&part)) return survey_.merge(*survey);
    auto& codes = std::get<CodeCounts>(part);
    codes_ ? codes_->merge(codes) : static_cast<void>(codes_ = std::move(codes));
  }
  [[nodiscard]] TensorSurvey survey() {
    if (!codes_) return survey_;
    codes_->settle();
    return survey_codes(*codes_, type_, survey_.histogram().format());
  }

 private:
  StoredType type_;
  TensorSurvey survey_;
  std::optional<CodeCounts> codes_;
};

}  // namespace

void survey_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                    const SurveySink& sink, const ElementProgress& progress) {
  std::vector<TensorPart> parts;
  for (const std::size_t index : chosen) {
    const StoredTensor& tensor = file.tensors().at(index);
    append_parts(index, tensor, counts_codes(tensor) ? coded_block : survey_block, parts);
  }
  std::optional<WholeTensor> whole;
  const auto work = [&](const TensorPart& part) { return survey_part(file, part, format); };
  work_through(parts, work, [&](const TensorPart& part, PartFound&& found) {
    const StoredTensor& tensor = file.tensors()[part.tensor];
    if (!whole) whole.emplace(tensor, format);
    whole->add(std::move(found));
    if (progress) progress(part.count);
    if (part.first + part.count < tensor.elements) return;
    sink(part.tensor, whole->survey());
    whole.reset();
  });
}

}  // namespace halfscope
