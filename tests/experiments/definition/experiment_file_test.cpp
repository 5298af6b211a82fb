// Experiments as TOML: every built-in one there and back, own arms and grids, and what is refused.
#include "experiments/definition/experiment_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>

#include "experiments/cli/experiment_table.hpp"
#include "experiments/definition/arm_config.hpp"
#include "experiments/definition/own_arms.hpp"
#include "experiments/definition/toml_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::experiment_file_test {
namespace {

Experiment read(const std::string& text) {
  const TemporaryFolder folder;
  return read_experiment_file(folder.put("mine.toml", text), known_names());
}

std::vector<std::string> names_of(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const Arm& arm : experiment.arms) names.push_back(arm.name);
  return names;
}

TEST_CASE("every built-in experiment reads back from TOML as it was", "[experiment_file]") {
  for (const Experiment& builtin : experiment_table()) {
    INFO(builtin.name);
    Experiment printed = builtin;
    printed.base = builtin.name;
    const Experiment back = read(to_toml(printed));
    CHECK(is_same(back, builtin));
    CHECK(names_of(back) == names_of(builtin));
    CHECK((back.summary == builtin.summary && back.paper == builtin.paper && back.varied == builtin.varied));
    CHECK((back.quick_arms == builtin.quick_arms && back.full_arms == builtin.full_arms));
    CHECK((back.quick_set == builtin.quick_set && back.report == builtin.report));
    CHECK(back.predicts_from == builtin.predicts_from);
    CHECK((back.verdict == builtin.verdict && back.verdict_arms.empty()));
    CHECK((back.analyses == builtin.analyses && back.harm_tasks == builtin.harm_tasks));
    for (const Arm& arm : builtin.arms) {
      CHECK(back.arm(arm.name).summary == arm.summary);
      for (const RunSize size : {RunSize::small, RunSize::full, RunSize::smoke})
        CHECK(to_json(arm_config(back, back.arm(arm.name), size)) == to_json(arm_config(builtin, arm, size)));
    }
    CHECK(to_toml(back) == to_toml(read(to_toml(back))));
  }
}

TEST_CASE("a built-in definition stands by itself, in its own text and as it is written",
          "[experiment_file]") {
  for (const Experiment& builtin : experiment_table()) {
    INFO(builtin.name);
    CHECK(to_toml(read(std::string(definition_text(builtin.name)))) == to_toml(builtin));
    const Experiment back = read(to_toml(builtin));
    CHECK(to_toml(back) == to_toml(builtin));
    CHECK(is_same(back, builtin));
    CHECK((back.base.empty() && back.place == builtin.place && back.report == builtin.report));
    CHECK((back.claim == builtin.claim && back.verdict == builtin.verdict));
    CHECK((back.published == builtin.published && back.harm_tasks == builtin.harm_tasks));
    CHECK((back.analyses == builtin.analyses && back.verdict_arms.empty()));
    for (const Arm& arm : builtin.arms) CHECK(back.arm(arm.name).baseline == arm.baseline);
  }
}

TEST_CASE("a grid is the product of its lists, the last one fastest", "[experiment_file]") {
  const Experiment experiment = read(R"(
[settings]
policy = "fp16_mixed"
steps = 10
[arm.fp32]
policy = "fp32"
[grid]
learning_rate = [1e-4, 0.5]
loss_scale = [1, 16, "dynamic"]
)");
  CHECK(experiment.name == "mine");
  CHECK(names_of(experiment) ==
        std::vector<std::string>{"fp32", "learning_rate=0.0001+loss_scale=1",
                                 "learning_rate=0.0001+loss_scale=16",
                                 "learning_rate=0.0001+loss_scale=dynamic", "learning_rate=0.5+loss_scale=1",
                                 "learning_rate=0.5+loss_scale=16", "learning_rate=0.5+loss_scale=dynamic"});
  CHECK(experiment.varied == std::vector<std::string>{"learning_rate", "loss_scale"});
  const TrainConfig last = arm_config(experiment, experiment.arms.back(), RunSize::small);
  CHECK((last.learning_rate == 0.5 && last.loss_scale == "dynamic" && last.policy == "fp16_mixed"));
  CHECK(arm_config(experiment, experiment.arms.front(), RunSize::small).policy == "fp32");
  CHECK((experiment.verdict.empty() && experiment.paper.empty()));
}

TEST_CASE("arms of a base are kept, copied or left out", "[experiment_file]") {
  const Experiment base = experiment_table().front();
  const Experiment all = read("base = 'master-copy'\n");
  CHECK(names_of(all) == names_of(base));
  CHECK((all.verdict == base.verdict && all.verdict_arms.empty()));
  const Experiment own = read(R"(
base = "master-copy"
arms = ["fp16_mixed"]
predicts_from = "fp16_mixed"
[arm.small]
like = "fp16_mixed"
batch = 8
full_settings = { batch = 16 }
[arm.smaller]
like = "small"
batch = 4
)");
  CHECK(names_of(own) == std::vector<std::string>{"fp16_mixed", "small", "smaller"});
  const TrainConfig small = arm_config(own, own.arm("small"), RunSize::small);
  CHECK((small.policy == "fp16_mixed" && small.batch == 8));
  CHECK(arm_config(own, own.arm("smaller"), RunSize::small).batch == 4);
  CHECK(arm_config(own, own.arm("smaller"), RunSize::full).batch == 16);
  CHECK(own.verdict == base.verdict);
  CHECK(own.verdict_arms == std::vector<std::string>{"fp16_mixed"});
}

/// An experiment on `base`: some of its arms in any order, and arms like any of them that are compared with
/// arms above them, below them, of the base, or with what `baseline` of the file names.
std::string drawn_file(const Experiment& base, std::mt19937& random) {
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  std::vector<std::string> of_base = names_of(base);
  std::ranges::shuffle(of_base, random);
  const std::vector<std::string> kept(of_base.begin(),
                                      of_base.begin() + static_cast<std::ptrdiff_t>(below(of_base.size())));
  std::vector<std::string> own, others = of_base;
  for (std::size_t i = 0, count = 2 + below(4); i < count; ++i) own.push_back(fmt::format("own {}", i));
  others.insert(others.end(), own.begin(), own.end());
  std::string text = fmt::format("base = {}\narms = {}\n", toml_quoted(base.name), toml_list(kept));
  if (below(2) == 0) text += fmt::format("baseline = {}\n", toml_quoted(own[below(own.size())]));
  for (const std::string& arm : own) {
    text += fmt::format("[arm.{}]\nlike = {}\n", toml_key(arm), toml_quoted(of_base[below(of_base.size())]));
    if (below(2) == 0) text += fmt::format("baseline = {}\n", toml_quoted(others[below(others.size())]));
  }
  return text;
}

TEST_CASE("an experiment reads back as it is written, whatever its arms are compared with",
          "[experiment_file]") {
  std::mt19937 random(70);
  for (int i = 0; i < 200; ++i) {
    const auto& table = experiment_table();
    const std::string text = drawn_file(table[random() % table.size()], random);
    INFO(text);
    const Experiment drawn = read(text);
    const Experiment back = read(to_toml(drawn));
    CHECK(names_of(back) == names_of(drawn));
    for (const Arm& arm : drawn.arms) CHECK(back.arm(arm.name).baseline == arm.baseline);
    CHECK(to_toml(back) == to_toml(drawn));
  }
}

TEST_CASE("a series is compared with arms below it", "[experiment_file]") {
  const Experiment experiment = read(R"(
baseline = "steady"
[arm."fp16 {}"]
baseline = "fp32 {}"
policy = "fp16_mixed"
batch = [8, 16]
[arm."fp32 {}"]
batch = [8, 16]
[arm.steady]
batch = 4
)");
  const auto of = [&](const char* arm) { return experiment.arm(arm).baseline; };
  CHECK((of("fp16 8") == "fp32 8" && of("fp16 16") == "fp32 16"));
  CHECK((of("fp32 8") == "steady" && of("steady").empty()));
  CHECK(to_toml(read(to_toml(experiment))) == to_toml(experiment));
}

TEST_CASE("a base with other settings or another metric has no verdict", "[experiment_file]") {
  CHECK(read("base = 'master-copy'\n[settings]\nsteps = 7\n").verdict.empty());
  CHECK(read("base = 'master-copy'\n[full_settings]\nsteps = 7\n").verdict.empty());
  CHECK(read("base = 'master-copy'\n[metric]\nkey = 'train_loss'\n").verdict.empty());
  CHECK_FALSE(read("base = 'master-copy'\nsummary = 'mine'\n").verdict.empty());
}

TEST_CASE("a file that is wrong is refused with line and column", "[experiment_file]") {
  const auto refusal = [](const std::string& text) {
    return message_of<InvalidArgument>([&] { (void)read(text); });
  };
  const std::string arm = "[arm.a]\n";
  check_says(refusal("lerning_rate = 1"), {"mine.toml: line 1, column 1", "'lerning_rate'", "one of: "});
  check_says(refusal(arm + "lerning_rate = 1"), {"line 2, column 1", "did you mean 'learning_rate'"});
  check_says(refusal(arm + "steps = 4.5"), {"line 2, column 1", "steps = '4.5'", "integer"});
  check_says(refusal(arm + "steps = [4]"), {"line 2, column 9", "steps"});
  check_says(refusal(arm + "seed = 1"), {"line 2", "--seed-list"});
  check_says(refusal(arm + "steps = 1\n" + arm), {"line 3", "arm.a"});
  check_says(refusal(arm + "like = 'b'"), {"line 2", "'b'"});
  check_says(refusal("base = 'master-copy'\n" + arm + "like = 'fp23'"), {"line 3", "did you mean 'fp32'"});
  check_says(refusal(arm + "baseline = 'b'\n[arm.c]"), {"line 2, column 1", "(one of: a, c)"});
  check_says(refusal(arm + "baseline = '{}'"), {"line 2", "'{}'"});
  check_says(refusal("[arm.'a {}']\nbaseline = 'b {}'\nsteps = [4]"), {"line 2", "'b 4'"});
  check_says(refusal("base = 'master-copy'\n" + arm + "baseline = 'fp23'"),
             {"line 3", "did you mean 'fp32'"});
  check_says(refusal("base = 'master'"), {"line 1", "did you mean 'master-copy'"});
  check_says(refusal("arms = ['fp32']"), {"line 1", "no base"});
  check_says(refusal("base = 'master-copy'\narms = ['fp23']"), {"line 2", "did you mean 'fp32'"});
  check_says(refusal("base = 'master-copy'\narms = ['fp32']\n[grid]\npolicy = ['fp32', 'fp23']"),
             {"line 4, column 19"});
  check_says(refusal("[grid]\nloss_scale = 3"), {"line 2, column 14", "list"});
  check_says(refusal("[grid]\nloss_scale = []"), {"line 1", "no values"});
  check_says(refusal(arm + "[grid]\nloss_scale = [1, 1]"), {"line 2", "loss_scale=1"});
  check_says(refusal("[arm.'a/b']"), {"line 1", "'a/b'", "'/'"});
  check_says(refusal("name = '..'\n" + arm), {"name '..'"});
  check_says(refusal("name = 3\n" + arm), {"line 1, column 8", "text in quotes"});
  check_says(refusal("[metric]\nkey = 'loss'\n" + arm), {"line 2", "did you mean", "train_loss"});
  check_says(refusal("[metric]\ndigits = 99\n" + arm), {"line 2, column 10", "0 to 9"});
  check_says(refusal("predicts_from = 'b'\n" + arm), {"line 1", "one of: a)"});
  check_says(refusal("quick_arms = ['b']\n" + arm), {"line 1", "one of: a)"});
  check_says(refusal("varied = ['stps']\n" + arm), {"line 1", "did you mean 'steps'"});
  check_says(refusal("columns = { scales = 'shown' }\n" + arm),
             {"line 1, column 13", "did you mean 'scale'"});
  check_says(refusal("settings = 3\n" + arm), {"line 1, column 12", "table"});
  check_says(refusal(""), {"mine.toml", "no arms"});
  check_says(refusal("a = ["), {"mine.toml: line 1, column"});
  std::string axes = "[grid]\n";
  for (const char* key : {"steps", "batch", "hidden_size"}) {
    std::string values;
    for (int i = 1; i <= 30; ++i) values += fmt::format("{},", i);
    axes += fmt::format("{} = [{}]\n", key, values);
  }
  check_says(refusal(axes), {"line 1", "10000 points"});
}

}  // namespace
}  // namespace halfscope::experiment_file_test
