// Blocks of tensors, surveyed side by side and merged in order.
#include <halfscope/io/survey_file.hpp>

#include <halfscope/io/tensor_parts.hpp>

namespace halfscope {

void survey_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                    const SurveySink& sink, const ElementProgress& progress) {
  std::vector<TensorPart> parts;
  for (const std::size_t index : chosen) append_parts(index, file.tensors().at(index), survey_block, parts);
  const auto survey_part = [&](const TensorPart& part) {
    SurveyPass pass(format);
    file.read(part.tensor, part.first, part.count, [&](std::span<const float> piece) { pass.add(piece); });
    return pass.survey();
  };
  TensorSurvey survey(format);
  work_through(parts, survey_part, [&](const TensorPart& part, const TensorSurvey& found) {
    survey.merge(found);
    if (progress) progress(part.count);
    if (part.first + part.count < file.tensors()[part.tensor].elements) return;
    sink(part.tensor, survey);
    survey = TensorSurvey(format);
  });
}

}  // namespace halfscope
