// Opening a data set by name.
#include "sim/data/datasets.hpp"

#include <halfscope/core/names.hpp>

namespace halfscope {

std::unique_ptr<Dataset> open_dataset(std::string_view name, DatasetSpec spec) {
  const DatasetEntry& entry = find_in_table("data set", name, datasets);
  if (spec.data.empty()) spec.data = entry.default_data;
  return entry.open(spec);
}

std::string data_maker(std::string_view name, const std::filesystem::path& data) {
  const DatasetEntry& entry = find_in_table("data set", name, datasets);
  return entry.maker == nullptr || !data.empty() ? "" : entry.maker();
}

}  // namespace halfscope
