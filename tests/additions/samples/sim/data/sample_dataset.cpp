// A data set as a newcomer would add it: images of 4x4 in which one row is bright, and is the class.
#include "sim/data/datasets.hpp"

namespace halfscope {
namespace {

constexpr EntryOption examples{
    "sample_examples", 16, {4, 1000}, "examples of each split", OptionKind::whole_number};

class SampleDataset final : public Dataset {
 public:
  explicit SampleDataset(std::int64_t size) : size_(size) {}
  [[nodiscard]] std::int64_t size(Split /*split*/) const override { return size_; }
  [[nodiscard]] Shape example_shape() const override { return {4, 4, 1}; }
  [[nodiscard]] std::int64_t class_count() const override { return 4; }
  [[nodiscard]] Batch batch(Split /*split*/, std::span<const std::int64_t> indices) const override {
    Batch batch{.inputs = Array({static_cast<std::int64_t>(indices.size()), 4, 4, 1})};
    float* pixel = batch.inputs.data();
    for (const std::int64_t index : indices) {
      if (index < 0 || index >= size_) throw InvalidArgument("sample_dataset has no such example");
      batch.labels.push_back(static_cast<std::int32_t>(index % 4));
      for (std::int64_t i = 0; i < 16; ++i) *pixel++ = i / 4 == index % 4 ? 1.0f : 0.0f;
    }
    return batch;
  }

 private:
  std::int64_t size_;
};

std::unique_ptr<Dataset> open_sample_dataset(const DatasetSpec& spec) {
  if (!spec.data.empty() && !std::filesystem::exists(spec.data)) {
    throw InvalidArgument("data set sample_dataset: there is no " + spec.data.string());
  }
  return std::make_unique<SampleDataset>(spec.whole(examples));
}

}  // namespace

constexpr DatasetKind sample_dataset_kind{
    .data = DataKind::images, .open = open_sample_dataset, .options = {examples}};

}  // namespace halfscope
