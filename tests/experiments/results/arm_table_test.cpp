// Columns and rows of the arms, for people and for programs.
#include "experiments/results/arm_table.hpp"

#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::arm_table_test {
namespace {

const Experiment experiment{.name = "tiny", .varied = {}, .arms = {}};

ExperimentSummary summary() {
  return {
      .metric = {},
      .arms = {
          {.arm = "none", .values = {std::nullopt}, .diverged = 1, .columns = columns_with({})},
          {.arm = "high", .values = {9.0}, .mean = 9.125, .columns = columns_with({{"fp16_flushed", 0.5}})},
          {.arm = "low",
           .values = {2.0, 4.0},
           .mean = 3.0,
           .low = 1.0,
           .high = 5.0,
           .columns = columns_with({{"fp16_flushed", 0.25}})}}};
}

std::vector<std::string> column(const Table& table, std::size_t at) {
  std::vector<std::string> texts;
  for (const auto& row : table.rows) texts.push_back(row[at].text);
  return texts;
}

TEST_CASE("programs get the ends of an interval and all digits", "[arm_table]") {
  CHECK(write_table(arm_table(experiment, summary(), TableFormat::csv), {TableFormat::csv}) ==
        "arm,seeds,mean,low,high,diverged,skipped,flushed,lost_updates,ms_per_step\n"
        "none,1,,,,1,,,,\n"
        "high,1,9.125,,,0,,0.5,,\n"
        "low,2,3,1,5,0,,0.25,,\n");
}

TEST_CASE("an accuracy beside the metric has a column, once an arm has one", "[arm_table]") {
  ExperimentSummary known = summary();
  set_column(known.arms[1], "accuracy", 31.25);
  CHECK(write_table(arm_table(experiment, known, TableFormat::csv), {TableFormat::csv}) ==
        "arm,seeds,mean,low,high,accuracy,diverged,skipped,flushed,lost_updates,ms_per_step\n"
        "none,1,,,,,1,,,,\n"
        "high,1,9.125,,,31.25,0,,0.5,,\n"
        "low,2,3,1,5,,0,,0.25,,\n");
}

TEST_CASE("rows are sorted by a column, those without a value last", "[arm_table]") {
  Table table = arm_table(experiment, summary(), TableFormat::text);
  sort_rows(table, "mean");
  CHECK(column(table, 0) == std::vector<std::string>{"low", "high", "none"});
  sort_rows(table, "arm");
  CHECK(column(table, 0) == std::vector<std::string>{"high", "low", "none"});
  sort_rows(table, "diverged");
  CHECK(column(table, 0) == std::vector<std::string>{"high", "low", "none"});
  check_says(message_of<InvalidArgument>([&] { sort_rows(table, "flushd"); }),
             {"column", "did you mean 'flushed'"});
}

TEST_CASE("a narrow terminal loses columns, and no two names look alike", "[arm_table]") {
  ExperimentSummary grid = summary();
  grid.arms[0].arm = "learning_rate=0.0001+loss_scale=1";
  grid.arms[1].arm = "learning_rate=0.001+loss_scale=1";
  grid.arms[2].arm = "learning_rate=0.01+loss_scale=1";
  const std::string text =
      write_table(arm_table(experiment, grid, TableFormat::text), {TableFormat::text, 60});
  CHECK(text.find("left out") != std::string::npos);
  std::vector<std::string> names;
  for (std::size_t at = text.find('\n') + 1; names.size() < 3; at = text.find('\n', at) + 1)
    names.push_back(text.substr(at + 2, text.find(' ', at + 2) - at - 2));
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

}  // namespace
}  // namespace halfscope::arm_table_test
