// Opening a data set by name.
#include "sim/data/datasets.hpp"

#include <halfscope/core/names.hpp>

namespace halfscope {

std::unique_ptr<Dataset> open_dataset(std::string_view name, const std::filesystem::path& folder) {
  const DatasetEntry& entry = find_in_table("data set", name, datasets);
  return entry.open(folder.empty() ? std::filesystem::path(entry.default_folder) : folder);
}

}  // namespace halfscope
