// Table, line and JSON of lost updates.
#include "experiments/cli/updates/updates_present.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

Cell lost_cell(const std::optional<double>& share) {
  return share ? Cell{share_text(*share), *share} : Cell{"-", std::monostate{}};
}

Table table_of(const std::vector<UpdateCounts>& updates) {
  const bool has_nonfinite =
      std::ranges::any_of(updates, [](const UpdateCounts& update) { return update.counts.nonfinite > 0; });
  Table table{{{"update", "update"}, {"elements", "elements", 1}, {"nonzero", "not zero", 2}}, {}};
  if (has_nonfinite) table.columns.push_back({"nonfinite", "inf/nan", 3});
  table.columns.insert(table.columns.end(), {{"lost", "lost"}, {"lost_share", "share"}});
  for (const UpdateCounts& update : updates) {
    const LostUpdates& counts = update.counts;
    std::vector<Cell> row{update.name, count_cell(counts.elements), count_cell(counts.nonzero)};
    if (has_nonfinite) row.push_back(count_cell(counts.nonfinite));
    row.insert(row.end(), {count_cell(counts.lost), lost_cell(update.lost_share())});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json update_json(const UpdateCounts& update) {
  const std::optional<double> share = update.lost_share();
  return {{"name", update.name},
          {"elements", update.counts.elements},
          {"nonzero", update.counts.nonzero},
          {"lost", update.counts.lost},
          {"nonfinite", update.counts.nonfinite},
          {"lost_share", share ? Json(*share) : Json()}};
}

}  // namespace

std::string lost_line(const std::vector<UpdateCounts>& updates) {
  const UpdateCounts all = sum_of(updates);
  const auto share = all.lost_share();
  if (!share) return "lost: no update is finite";
  return fmt::format("lost: {} of all nonzero{} updates{}", share_text(*share),
                     all.counts.nonfinite > 0 ? " finite" : "",
                     all.counts.lost == 0 ? "" : "; an FP32 master copy of the weights keeps them");
}

std::string updates_text(const UpdatesRequest& request, const std::vector<UpdateCounts>& updates,
                         std::size_t width) {
  return fmt::format("Updates that would not change a weight stored as {}.\n\n{}\n{}\n",
                     to_string(request.format), write_table(table_of(updates), {.width = width}),
                     lost_line(updates));
}

std::string updates_table(const std::vector<UpdateCounts>& updates, TableFormat format) {
  return write_table(table_of(updates), {format});
}

std::string updates_json(const UpdatesRequest& request, const std::vector<UpdateCounts>& updates) {
  Json json{
      {"format", to_string(request.format)}, {"verdict", lost_line(updates)}, {"updates", Json::array()}};
  for (const UpdateCounts& update : updates) json["updates"].push_back(update_json(update));
  return to_text(json);
}

}  // namespace halfscope
