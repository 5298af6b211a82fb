// Lists settled runs and looks at their folders.
#include "experiments/runner/run_matrix.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <halfscope/io/file.hpp>

#include "experiments/runner/shard.hpp"
#include "experiments/runner/text_table.hpp"

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

}  // namespace

Json run_matrix(const Experiment& experiment, const RunRequest& request) {
  Json runs = Json::array();
  for (const PlannedRun& run : share_of(settled_runs(experiment, request), request.shard)) {
    const RunIdentity& identity = run.folder.identity();
    runs.push_back({{"experiment", identity.experiment},
                    {"arm", identity.arm},
                    {"seed", identity.seed},
                    {"folder", printable(run.folder.path())},
                    {"state", state_of(run)},
                    {"steps", run.settings.config.steps},
                    {"config_hash", config_hash(run)}});
  }
  return {{"runs", runs}};
}

std::string to_table(const Json& matrix) {
  std::vector<std::vector<std::string>> rows{{"arm", "seed", "steps", "state", "config_hash"}};
  for (const Json& run : matrix.at("runs")) {
    rows.push_back({run.at("arm").get<std::string>(), run.at("seed").dump(), run.at("steps").dump(),
                    run.at("state").get<std::string>(), run.at("config_hash").get<std::string>()});
  }
  return text_table(rows);
}

}  // namespace halfscope
