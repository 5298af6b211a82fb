// Keys of an experiment's file that judge its results: claim, the paper's table, tasks, analyses and verdict;
// and mistakes in each.
#include "experiments/definition/judgement_file.hpp"

#include "experiments/cli/experiment_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::judgement_file_test {
namespace {

/// Arms a and b of line 2 on, the second compared with the first.
const std::string arms = "\n[arm.a]\n[arm.b]\nbaseline = 'a'\n";

Experiment read(const std::string& text) {
  return read_experiment(text, "mine.toml", known_names());
}

/// The one line that refuses `text`, which stands before two arms.
std::string refusal(const std::string& text) {
  return message_of<InvalidArgument>([&] { (void)read(text + arms); });
}

TEST_CASE("a claim, a table of the paper's and a verdict are read", "[experiment_file]") {
  const Experiment read_back = read(R"(analyses = ["ctc"]
verdict = ["{b | a}.", { text = "x ", when = ["b"], otherwise = "{ctc: b}", items = ["y"], join = ", ", closing = "!" }]
claim = { text = "It is.", expect = [{ arm = "b", expected = "as_good", margin = 0.5, reason = "Half." }] }
published = [{ row = "Net", baseline = "a", arm = "b", paper_arm = 2 }]
harm_task = [{ name = "t", baseline = "a", loss = "log_perplexity", set = "held_out" }]
)" + arms);
  const Expectation expected{"b", "a", Expected::as_good, 0.5, "Half."};
  CHECK(read_back.analyses == std::vector<std::string>{"ctc"});
  CHECK(read_back.claim == Claim{"It is.", {expected}});
  CHECK(read_back.published == std::vector<PublishedRow>{{"Net", "a", "b", std::nullopt, 2.0}});
  CHECK(read_back.harm_tasks ==
        std::vector<HarmTask>{{"t", "a", LossKind::log_perplexity, HarmSet::held_out}});
  REQUIRE(read_back.verdict.size() == 2);
  CHECK(read_back.verdict[0] == Sentence{.text = "{b | a}."});
  CHECK(read_back.verdict[1] == Sentence{.text = "x ",
                                         .when = {expected},
                                         .otherwise = "{ctc: b}",
                                         .items = {{.text = "y"}},
                                         .join = ", ",
                                         .closing = "!"});
}

TEST_CASE("a mistake in a claim is told with line and column", "[experiment_file]") {
  check_says(refusal("claim = 3"), {"mine.toml: line 1, column 9: claim: give a table"});
  check_says(refusal("claim = {}"), {"line 1, column 1", "'text'"});
  check_says(refusal("claim = { txt = '' }"), {"line 1, column 11", "did you mean 'text'"});
  check_says(refusal("claim = { text = 3 }"), {"line 1, column 18", "text in quotes"});
  const auto expect = [](const std::string& entry) {
    return refusal("[claim]\ntext = 't'\nexpect = [" + entry + "]\n");
  };
  check_says(refusal("[claim]\ntext = 't'\nexpect = 3\n"), {"line 3, column 10", "a list"});
  check_says(expect("3"), {"line 3, column 11", "a table"});
  check_says(expect("{ expected = 'worse' }"), {"line 3, column 11", "'arm'"});
  check_says(expect("{ arm = 'c' }"), {"line 3, column 13", "'c'"});
  check_says(expect("{ arm = 'a' }"), {"line 3, column 11", "arm a has no baseline"});
  check_says(expect("{ arm = 'b', baseline = 'c' }"), {"line 3, column 24", "'c'"});
  check_says(expect("{ arm = 'b' }"), {"line 3, column 11", "'expected'"});
  check_says(expect("{ arm = 'b', expected = 'wors' }"), {"line 3, column 24", "did you mean 'worse'"});
  check_says(expect("{ arm = 'b', expected = 'as_good' }"), {"line 3, column 11", "margin above 0"});
  check_says(expect("{ arm = 'b', expected = 'as_good', margin = 0 }"), {"line 3", "margin above 0"});
  check_says(expect("{ arm = 'b', expected = 'worse', margin = -1 }"), {"line 3", "margin", "0 on"});
  check_says(expect("{ arm = 'b', expected = 'worse', margin = nan }"), {"line 3", "margin", "0 on"});
  check_says(expect("{ arm = 'b', margni = 1 }"), {"line 3, column 24", "did you mean 'margin'"});
  check_says(expect("{ arm = 'b', tolerance = 1 }"), {"line 3, column 24", "margin"});
  check_says(expect("{ arm = 'b', expected = 'within_seeds' }"), {"line 3, column 24", "as_good"});
  check_says(refusal("[claim]\ntext = 't'\nmargin = -1\n"), {"line 1, column 2", "margin", "0 on"});
}

TEST_CASE("expectations have the claim's margin and reason unless they have their own", "[experiment_file]") {
  const Experiment read_back = read(R"([claim]
text = "It is."
margin = 2
reason = "Two."
expect = [
  { arm = "b", expected = "as_good" },
  { arm = "b", expected = "worse", margin = 0 },
  { arm = "b", expected = "better", margin = 3, reason = "Three." },
]
)" + arms);
  const std::vector<Expectation> expected{{"b", "a", Expected::as_good, 2, "Two."},
                                          {"b", "a", Expected::worse, 0, ""},
                                          {"b", "a", Expected::better, 3, "Three."}};
  CHECK(read_back.claim.expectations == expected);
  CHECK(read(to_toml(read_back)).claim == read_back.claim);
}

TEST_CASE("a mistake in a table of the paper's, a task or an analysis is told with line and column",
          "[experiment_file]") {
  check_says(refusal("published = [{ baseline = 'a', arm = 'b' }]"), {"line 1, column 14", "'row'"});
  check_says(refusal("published = [{ row = 'r', baseline = 'a', arm = 'c' }]"), {"line 1, column 43", "'c'"});
  check_says(refusal("published = [{ row = 'r', baseline = 'a', arm = 'b', paper_arm = 'x' }]"),
             {"line 1, column 66", "a number"});
  check_says(refusal("published = [{ row = 'r', papr_arm = 1 }]"), {"column 27", "did you mean 'paper_arm'"});
  check_says(refusal("harm_task = [{ name = 't' }]"), {"line 1, column 14", "'baseline'"});
  check_says(refusal("harm_task = [{ name = 't', baseline = 'c' }]"), {"line 1, column 28", "'c'"});
  check_says(refusal("harm_task = [{ name = 't', baseline = 'a', loss = 'plian' }]"),
             {"line 1, column 44", "did you mean 'plain'"});
  check_says(refusal("harm_task = [{ name = 't', baseline = 'a', set = 'fited' }]"),
             {"line 1, column 44", "did you mean 'fitted'"});
  check_says(refusal("analyses = ['ctv']"), {"line 1, column 13", "did you mean 'ctc'"});
  check_says(refusal("analyses = 'ctc'"), {"line 1, column 12", "a list"});
}

TEST_CASE("a mistake in a verdict is told with line and column", "[experiment_file]") {
  const auto text = [](const std::string& words) { return refusal("verdict = ['" + words + "']"); };
  check_says(refusal("verdict = 'x'"), {"line 1, column 11", "a list"});
  check_says(refusal("verdict = [3]"), {"line 1, column 12", "a table"});
  check_says(refusal("verdict = [{ when = ['b'] }]"), {"line 1, column 12", "'text'"});
  check_says(refusal("verdict = [{ text = 'x', wen = [] }]"), {"line 1, column 26", "did you mean 'when'"});
  check_says(refusal("verdict = [{ text = 'x', when = ['b'] }]"),
             {"line 1, column 34", "expects nothing of b"});
  check_says(refusal("verdict = [{ text = 'x', otherwise = '{c | a}' }]"), {"line 1, column 26", "'c'"});
  check_says(refusal("verdict = [{ text = 'x', items = ['{c | a}'] }]"), {"line 1, column 35", "'c'"});
  check_says(text("{b | a"), {"line 1, column 12", "brace"});
  check_says(text("{c | a}"), {"line 1, column 12", "'c'"});
  check_says(text("{b / c}"), {"line 1, column 12", "'c'"});
  check_says(text("{b.skiped}"), {"line 1, column 12", "column", "did you mean 'skipped'"});
  check_says(text("{b.skipped:x}"), {"line 1, column 12", "digits"});
  check_says(text("{ctc}"), {"line 1, column 12", "analysis of this file"});
  check_says(refusal("analyses = ['ctc']\nverdict = ['{ctc: c}']"), {"line 2, column 12", "'c'"});
}

TEST_CASE("a mistake in place, columns or a baseline is told with line and column", "[experiment_file]") {
  check_says(refusal("place = 1000"), {"line 1, column 9", "0 to 999"});
  check_says(refusal("place = 'one'"), {"line 1, column 9", "0 to 999"});
  check_says(refusal("columns = { memory = 'show' }"), {"line 1, column 13", "did you mean 'shown'"});
  check_says(refusal("columns = 3"), {"line 1, column 11", "a table"});
  check_says(refusal("baseline = 'c'"), {"line 1, column 1", "'c'"});
  check_says(message_of<InvalidArgument>([] { (void)read("[arm.a]\nbaseline = 'c'\n"); }),
             {"line 2, column 1", "'c'"});
}

TEST_CASE("what an experiment is judged by is the base's or the file's own", "[experiment_file]") {
  for (const std::string_view key : judgement_keys) {
    check_says(refusal("base = 'master-copy'\n" + std::string(key) + " = []"),
               {"line 2, column 1", std::string(key), "base"});
  }
}

TEST_CASE("placeholders are taken apart", "[experiment_file]") {
  using Kind = Placeholder::Kind;
  CHECK(placeholders("a {b} c {d.e:1}") == std::vector<std::string_view>{"b", "d.e:1"});
  CHECK(placeholders("none").empty());
  for (const char* wrong : {"{a", "a}", "{a{b}}"})
    check_says(message_of<InvalidArgument>([&] { (void)placeholders(wrong); }), {wrong, "other half"});
  const auto is = [](std::string_view text, Kind kind, std::string_view subject, std::string_view other,
                     int digits = -1) {
    const Placeholder found = parse_placeholder(text);
    return found.kind == kind && found.subject == subject && found.other == other && found.digits == digits;
  };
  CHECK(is("a | b", Kind::words, "a", "b"));
  CHECK(is("a / b", Kind::ratio, "a", "b"));
  CHECK(is("a - b", Kind::difference, "a", "b"));
  CHECK(is("a % b", Kind::shortfall, "a", "b"));
  CHECK(is("a.skipped", Kind::column, "a", "skipped"));
  CHECK(is("a.skipped:2", Kind::column, "a", "skipped", 2));
  CHECK(is("ctc", Kind::finding, "ctc", ""));
  CHECK(is("ctc: a-b", Kind::finding, "ctc", "a-b"));
}

}  // namespace
}  // namespace halfscope::judgement_file_test
