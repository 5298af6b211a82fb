// Reads experiments from TOML.
#include "experiments/definition/experiment_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/io/file.hpp>

#include "experiments/definition/judgement_file.hpp"
#include "experiments/definition/own_arms.hpp"
#include "experiments/definition/toml_file.hpp"

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 18> arm_keys{
    "name",          "base",      "place",      "summary",   "paper",         "metric",
    "predicts_from", "varied",    "quick_arms", "settings",  "full_settings", "arms",
    "arm",           "full_arms", "grid",       "quick_set", "columns",       "baseline"};
constexpr std::array<std::string_view, 6> metric_keys{
    "key", "name", "unit", "comparison", "lower_is_better", "digits"};
constexpr int most_places = 999;
constexpr std::array<std::string_view, 5> metrics_of_runs{"metric", "train_loss", "test_loss",
                                                          "log_probability_gap", "kl_divergence"};

/// One file's experiment, in the order in which its parts depend on each other.
class Reader {
 public:
  Reader(TomlFile file, const KnownNames& known) : file_(std::move(file)), known_(known) {}

  Experiment read() {
    check_keys();
    const Experiment* base = read_base();
    read_words(base);
    read_settings();
    read_arms(base);
    read_names_of_arms();
    if (base == nullptr) {
      read_judgement(file_, known_, experiment_);
    } else {
      take_verdict(experiment_, *base);
    }
    return std::move(experiment_);
  }

 private:
  void check_keys() const {
    std::vector<std::string_view> keys(arm_keys.begin(), arm_keys.end());
    keys.insert(keys.end(), judgement_keys.begin(), judgement_keys.end());
    file_.check_keys(file_.root(), keys);
    if (!file_.root().contains("base")) return;
    for (const std::string_view key : judgement_keys) {
      with_entry(key, [&](const TomlEntry&) {
        throw InvalidArgument(fmt::format("{}: it is the base's; leave out one of both", key));
      });
    }
  }

  const Experiment* read_base() {
    const Experiment* base = nullptr;
    with_entry("base", [&](const TomlEntry& entry) {
      if (known_.base == nullptr) throw InvalidArgument("base: a built-in experiment has none");
      base = &known_.base(file_.text(entry));
      experiment_ = *base;
      experiment_.base = base->name;
      experiment_.place = 0;
    });
    return base;
  }

  void read_words(const Experiment* base) {
    Experiment& to = experiment_;
    to.name = file_.path().stem().string();
    with_entry("name", [&](const TomlEntry& entry) { to.name = file_.text(entry); });
    check_folder_name("experiment", to.name);
    to.summary = base == nullptr ? "arms of " + file_.path().filename().string()
                                 : fmt::format("arms of {} on the settings of {}",
                                               file_.path().filename().string(), base->name);
    with_entry("summary", [&](const TomlEntry& entry) { to.summary = file_.text(entry); });
    if (has_own_arms()) to.paper.clear();  // the paper's figures are of the base's arms
    with_entry("paper", [&](const TomlEntry& entry) { to.paper = file_.text(entry); });
    with_entry("metric", [&](const TomlEntry& entry) { read_metric(entry); });
    with_entry("quick_set", [&](const TomlEntry& entry) {
      to.quick_set = parse_enum<QuickSet>("quick_set", file_.text(entry));
    });
    with_entry("place", [&](const TomlEntry& entry) { to.place = file_.whole_number(entry, most_places); });
    with_entry("columns", [&](const TomlEntry& entry) { read_columns(entry); });
  }

  void read_columns(const TomlEntry& columns) {
    constexpr std::array<std::string_view, 3> keys{"scale", "memory", "arms"};
    file_.check_keys(file_.table(columns), keys);
    for (const TomlEntry& entry : in_file_order(file_.table(columns))) {
      file_.at(entry, [&] {
        ReportParts& to = experiment_.report;
        Shown& part = entry.key == "scale" ? to.scale : entry.key == "memory" ? to.memory : to.arms;
        part = parse_enum<Shown>(entry.key, file_.text(entry));
      });
    }
  }

  void read_metric(const TomlEntry& metric) {
    file_.check_keys(file_.table(metric), metric_keys);
    ReportedMetric& to = experiment_.metric;
    for (const TomlEntry& entry : in_file_order(file_.table(metric))) {
      file_.at(entry, [&] {
        if (entry.key == "name") to.name = file_.text(entry);
        if (entry.key == "unit") to.unit = file_.text(entry);
        if (entry.key == "comparison")
          to.comparison = parse_enum<Comparison>("comparison", file_.text(entry));
        if (entry.key == "lower_is_better") to.lower_is_better = file_.flag(entry);
        if (entry.key == "digits") to.digits = file_.whole_number(entry, 9);
        if (entry.key == "key") {
          to.key = file_.text(entry);
          if (std::ranges::find(metrics_of_runs, to.key) == metrics_of_runs.end())
            throw InvalidArgument(unknown_name("metric", to.key, metrics_of_runs));
        }
      });
    }
  }

  void read_settings() {
    with_entry("settings", [&](const TomlEntry& entry) {
      experiment_.settings = with(experiment_.settings, settings(file_.table(entry)));
    });
    with_entry("full_settings", [&](const TomlEntry& entry) {
      experiment_.full_settings = with(experiment_.full_settings, settings(file_.table(entry)));
    });
  }

  /// Arms of the file take the place of the base's, but for those that `arms` keeps.
  void read_arms(const Experiment* base) {
    if (has_own_arms()) {
      experiment_.arms.clear();
      experiment_.quick_arms.clear();
      experiment_.full_arms.clear();
    }
    with_entry("varied", [&](const TomlEntry& entry) { read_varied(entry); });
    with_entry("arms", [&](const TomlEntry& entry) { keep_arms(entry, base); });
    with_entry("arm", [&](const TomlEntry& entry) {
      for (const TomlEntry& arm : in_file_order(file_.table(entry)))
        file_.at(arm, [&] { read_arm(arm, base); });
    });
    with_entry("grid", [&](const TomlEntry& entry) { add_grid(experiment_, axes(file_.table(entry))); });
    check_baselines(base);
    with_entry("baseline",
               [&](const TomlEntry& entry) { set_baseline(experiment_.arm(file_.text(entry)).name); });
    if (experiment_.arms.empty())
      throw InvalidArgument(printable(file_.path()) +
                            ": no arms; give [arm.NAME] tables, a [grid] or a base");
  }

  /// Compares all arms that have no baseline of their own with `baseline`.
  void set_baseline(const std::string& baseline) {
    for (Arm& arm : experiment_.arms)
      if (arm.baseline.empty() && arm.name != baseline) arm.baseline = baseline;
  }

  void keep_arms(const TomlEntry& entry, const Experiment* base) {
    if (base == nullptr) throw InvalidArgument("arms are names of arms of the base; there is no base");
    for (const std::string& name : file_.texts(entry)) experiment_.arms.push_back(base->arm(name));
  }

  void read_arm(const TomlEntry& entry, const Experiment* base) {
    Arm arm{.name = std::string(entry.key), .summary = {}, .settings = {}};
    Settings own;
    std::optional<TomlEntry> series, baseline;
    for (const TomlEntry& part : in_file_order(file_.table(entry))) {
      file_.at(part, [&] {
        if (part.key == "summary") {
          arm.summary = file_.text(part);
        } else if (part.key == "baseline") {
          arm.baseline = file_.text(part);
          baseline = part;
        } else if (part.key == "full_settings") {
          arm.full_settings = with(arm.full_settings, settings(file_.table(part)));
        } else if (part.key == "like") {
          start_like(arm, file_.text(part), base);
        } else if (part.value->is_array()) {
          if (series) throw InvalidArgument(fmt::format("{}: {} has a list already", part.key, series->key));
          series = part;
        } else {
          own.emplace_back(part.key, checked(part));
        }
      });
    }
    arm.settings = with(std::move(arm.settings), own);
    const std::size_t first = experiment_.arms.size();
    if (series) {
      file_.at(*series, [&] { add_series(arm, *series); });
    } else {
      add_arm(experiment_, std::move(arm));
    }
    if (!baseline) return;
    for (std::size_t i = first; i < experiment_.arms.size(); ++i)
      baselines_.emplace_back(*baseline, experiment_.arms[i].baseline);
  }

  /// Baselines are checked after all arms: the file may have an arm below the ones that are compared with it.
  void check_baselines(const Experiment* base) const {
    for (const auto& baseline : baselines_)
      file_.at(baseline.first, [&] { (void)arm_named(baseline.second, base); });
  }

  /// An arm per value, which stands for {} in the arm's name, summary and baseline.
  void add_series(const Arm& pattern, const TomlEntry& entry) {
    if (pattern.name.find(place) == std::string::npos)
      file_.fail(entry.value->source(),
                 fmt::format("{}: an arm with a list of values has {{}} in its name", entry.key));
    const GridAxis series = axis(entry);
    const auto named = [&](std::string text, const std::string& value) {
      for (std::size_t at = text.find(place); at != std::string::npos;
           at = text.find(place, at + value.size()))
        text.replace(at, place.size(), value);
      return text;
    };
    for (const std::string& value : series.second) {
      Arm arm = pattern;
      arm.name = named(pattern.name, value);
      arm.summary = named(pattern.summary, value);
      arm.baseline = named(pattern.baseline, value);
      arm.settings = with(std::move(arm.settings), {{series.first, value}});
      add_arm(experiment_, std::move(arm));
    }
  }

  /// An arm of this file, as far as it is read, or one of the base.
  [[nodiscard]] const Arm& arm_named(const std::string& name, const Experiment* base) const {
    return experiment_.has_arm(name) || base == nullptr ? experiment_.arm(name) : base->arm(name);
  }

  void start_like(Arm& arm, const std::string& name, const Experiment* base) const {
    const Arm& model = arm_named(name, base);
    arm.settings = with(model.settings, arm.settings);
    arm.full_settings = with(model.full_settings, arm.full_settings);
    if (arm.baseline.empty()) arm.baseline = model.baseline;
  }

  std::vector<GridAxis> axes(const toml::table& grid) const {
    std::vector<GridAxis> found;
    for (const TomlEntry& entry : in_file_order(grid)) found.push_back(axis(entry));
    return found;
  }

  GridAxis axis(const TomlEntry& entry) const {
    if (!entry.value->is_array()) file_.fail(entry.value->source(), "give a list of values");
    GridAxis axis{std::string(entry.key), {}};
    for (const TomlEntry& element : file_.elements(entry))
      file_.at(element, [&] { axis.second.push_back(checked(element)); });
    return axis;
  }

  void read_varied(const TomlEntry& entry) {
    experiment_.varied = file_.texts(entry);
    for (const std::string& key : experiment_.varied) (void)get_field(TrainConfig{}, key);
  }

  void read_names_of_arms() {
    const auto names = [&](std::string_view key, std::vector<std::string>& to) {
      with_entry(key, [&](const TomlEntry& entry) {
        to = file_.texts(entry);
        for (const std::string& name : to) (void)experiment_.arm(name);
      });
    };
    names("quick_arms", experiment_.quick_arms);
    names("full_arms", experiment_.full_arms);
    std::string& source = experiment_.predicts_from;
    if (!experiment_.has_arm(source)) source.clear();
    with_entry("predicts_from",
               [&](const TomlEntry& entry) { source = experiment_.arm(file_.text(entry)).name; });
  }

  [[nodiscard]] bool has_own_arms() const {
    return file_.root().contains("arms") || file_.root().contains("arm") || file_.root().contains("grid");
  }

  template <typename Action>
  void with_entry(std::string_view key, const Action& action) const {
    file_.with_entry(file_.root(), key, action);
  }

  [[nodiscard]] Settings settings(const toml::table& table) const {
    Settings found;
    for (const TomlEntry& entry : in_file_order(table))
      file_.at(entry, [&] { found.emplace_back(entry.key, checked(entry)); });
    return found;
  }

  /// A setting's value, which a config takes.
  [[nodiscard]] std::string checked(const TomlEntry& entry) const {
    if (entry.key == "seed") throw InvalidArgument("seed: choose seeds with --seeds or --seed-list");
    std::string value = file_.setting(entry);
    TrainConfig config;
    set_field(config, entry.key, value);
    return value;
  }

  static constexpr std::string_view place = "{}";

  TomlFile file_;
  const KnownNames& known_;
  Experiment experiment_{};
  std::vector<std::pair<TomlEntry, std::string>> baselines_;  ///< where the file names one, and its name
};

}  // namespace

Experiment read_experiment_file(const std::filesystem::path& path, const KnownNames& known) {
  return read_experiment(read_file(path), path, known);
}

Experiment read_experiment(std::string_view text, const std::filesystem::path& path,
                           const KnownNames& known) {
  return Reader(TomlFile(text, path), known).read();
}

}  // namespace halfscope
