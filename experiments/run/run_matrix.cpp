// Lists settled runs and looks at their folders.
#include "experiments/run/run_matrix.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <set>

#include <halfscope/io/file.hpp>

#include "experiments/table/table.hpp"

namespace halfscope {
namespace {

std::string state_of(const PlannedRun& run) {
  if (!run.folder.exists()) return "new";
  try {
    run.folder.check_same(run.settings);
  } catch (const InvalidArgument&) {
    return "other_settings";
  }
  return run.folder.is_done() ? "done" : "unfinished";
}

std::string config_hash(const PlannedRun& run) {
  const std::string text = to_text(run.folder.config_json(run.settings));
  return boost::uuids::to_string(boost::uuids::name_generator_sha1(boost::uuids::ns::url())(text));
}

Json matrix_row(const PlannedRun& run) {
  const RunIdentity& identity = run.folder.identity();
  return {{"experiment", identity.experiment},
          {"arm", identity.arm},
          {"seed", identity.seed},
          {"folder", printable(run.folder.path())},
          {"state", state_of(run)},
          {"steps", run.settings.config.steps},
          {"config_hash", config_hash(run)}};
}

}  // namespace

Json run_matrix(const std::vector<PlannedRun>& planned) {
  Json runs = Json::array();
  for (const PlannedRun& run : planned) runs.push_back(matrix_row(run));
  return {{"runs", runs}};
}

std::string to_table(const Json& matrix) {
  Table table;
  std::set<std::string> experiments;
  for (const char* title : {"experiment", "arm", "seed", "steps", "state", "config_hash"})
    table.columns.push_back({title, title});
  for (const Json& run : matrix.at("runs")) {
    table.rows.push_back({run.at("experiment").get<std::string>(), run.at("arm").get<std::string>(),
                          run.at("seed").dump(), run.at("steps").dump(), run.at("state").get<std::string>(),
                          run.at("config_hash").get<std::string>()});
    experiments.insert(table.rows.back().front().text);
  }
  if (experiments.size() < 2) {
    table.columns.erase(table.columns.begin());
    for (auto& row : table.rows) row.erase(row.begin());
  }
  return write_table(table, {});
}

}  // namespace halfscope
