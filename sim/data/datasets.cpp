// Opening a data set by name.
#include "sim/data/datasets.hpp"

#include <halfscope/core/names.hpp>

namespace halfscope {

std::unique_ptr<Dataset> open_dataset(std::string_view name, DatasetSpec spec) {
  const DatasetKind& kind = find_in_table("data set", name, datasets).kind;
  if (spec.data.empty()) spec.data = kind.default_data;
  return kind.open(spec);
}

std::string data_maker(std::string_view name, const std::filesystem::path& data) {
  const DatasetKind& kind = find_in_table("data set", name, datasets).kind;
  return kind.maker == nullptr || !data.empty() ? "" : kind.maker();
}

}  // namespace halfscope
