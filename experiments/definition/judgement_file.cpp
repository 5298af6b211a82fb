// Reads claims, the paper's tables, analyses and verdicts from TOML.
#include "experiments/definition/judgement_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 4> claim_keys{"text", "expect", "margin", "reason"};
constexpr std::array<std::string_view, 5> expectation_keys{"arm", "baseline", "expected", "margin", "reason"};
constexpr std::array<std::string_view, 5> published_keys{"row", "baseline", "arm", "paper_baseline",
                                                         "paper_arm"};
constexpr std::array<std::string_view, 4> harm_keys{"name", "baseline", "loss", "set"};
constexpr std::array<std::string_view, 6> sentence_keys{"text",  "when", "otherwise",
                                                        "items", "join", "closing"};

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

class JudgementReader {
 public:
  JudgementReader(const TomlFile& file, const KnownNames& known, Experiment& experiment)
      : file_(file), known_(known), to_(experiment) {}

  void read() {
    with_list("analyses", to_.analyses, [&](const TomlEntry& entry) { return analysis(entry); });
    file_.with_entry(file_.root(), "claim", [&](const TomlEntry& entry) { read_claim(entry); });
    with_list("published", to_.published, [&](const TomlEntry& entry) { return published(entry); });
    with_list("harm_task", to_.harm_tasks, [&](const TomlEntry& entry) { return harm_task(entry); });
    if (file_.root().contains("verdict")) to_.verdict_arms.clear();
    with_list("verdict", to_.verdict, [&](const TomlEntry& entry) { return sentence(entry); });
  }

 private:
  template <typename Element, typename Read>
  void with_list(std::string_view key, std::vector<Element>& to, const Read& read_element) const {
    file_.with_entry(file_.root(), key,
                     [&](const TomlEntry& entry) { to = list<Element>(entry, read_element); });
  }

  template <typename Element, typename Read>
  std::vector<Element> list(const TomlEntry& entry, const Read& read_element) const {
    std::vector<Element> elements;
    for (const TomlEntry& element : file_.elements(entry))
      file_.at(element, [&] { elements.push_back(read_element(element)); });
    return elements;
  }

  /// The table of an entry whose keys are among `keys`.
  const toml::table& table(const TomlEntry& entry, std::span<const std::string_view> keys) const {
    const toml::table& table = file_.table(entry);
    file_.check_keys(table, keys);
    return table;
  }

  void read_text(const toml::table& table, std::string_view key, std::string& to) const {
    file_.with_entry(table, key, [&](const TomlEntry& entry) { to = file_.text(entry); });
  }

  void read_arm(const toml::table& table, std::string_view key, std::string& to) const {
    file_.with_entry(table, key, [&](const TomlEntry& entry) { to = to_.arm(file_.text(entry)).name; });
  }

  template <typename Enum>
  void read_enum(const toml::table& table, std::string_view key, Enum& to) const {
    file_.with_entry(table, key,
                     [&](const TomlEntry& entry) { to = parse_enum<Enum>(key, file_.text(entry)); });
  }

  template <typename Number>
  void read_number(const toml::table& table, std::string_view key, Number& to) const {
    file_.with_entry(table, key, [&](const TomlEntry& entry) { to = file_.number(entry); });
  }

  void require(const TomlEntry& entry, std::string_view key) const {
    if (!file_.table(entry).contains(key)) throw InvalidArgument(fmt::format("it lacks the key '{}'", key));
  }

  std::string analysis(const TomlEntry& entry) const {
    std::string name = file_.text(entry);
    if (std::ranges::find(known_.analyses, name) == known_.analyses.end())
      throw InvalidArgument(unknown_name("analysis", name, known_.analyses));
    return name;
  }

  void read_claim(const TomlEntry& entry) {
    to_.claim = {};
    const toml::table& claim = table(entry, claim_keys);
    require(entry, "text");
    read_text(claim, "text", to_.claim.text);
    Expectation usual;
    read_margin(claim, usual);
    file_.with_entry(claim, "expect", [&](const TomlEntry& expected) {
      to_.claim.expectations =
          list<Expectation>(expected, [&](const TomlEntry& one) { return expectation(one, usual); });
    });
  }

  /// A margin of one's own has a reason of its own.
  void read_margin(const toml::table& from, Expectation& to) const {
    if (from.contains("margin")) to.reason.clear();
    read_number(from, "margin", to.margin);
    if (!(to.margin >= 0 && std::isfinite(to.margin)))
      throw InvalidArgument("margin: give a number from 0 on");
    read_text(from, "reason", to.reason);
  }

  /// `usual` has the margin and the reason of the claim.
  Expectation expectation(const TomlEntry& entry, const Expectation& usual = {}) const {
    Expectation expectation = usual;
    const toml::table& from = table(entry, expectation_keys);
    require(entry, "arm");
    read_arm(from, "arm", expectation.arm);
    expectation.baseline = to_.arm(expectation.arm).baseline;
    read_arm(from, "baseline", expectation.baseline);
    if (expectation.baseline.empty())
      throw InvalidArgument(fmt::format("arm {} has no baseline; give one here", expectation.arm));
    require(entry, "expected");
    read_enum(from, "expected", expectation.expected);
    read_margin(from, expectation);
    if (expectation.expected == Expected::as_good && expectation.margin == 0)
      throw InvalidArgument("as_good needs a margin above 0, here or in [claim]");
    return expectation;
  }

  /// An expectation, or the name of an arm: what the claim expects of it.
  Expectation condition(const TomlEntry& entry) const {
    if (!entry.value->is_string()) return expectation(entry);
    const std::string& arm = to_.arm(file_.text(entry)).name;
    const auto expectation = std::ranges::find(to_.claim.expectations, arm, &Expectation::arm);
    if (expectation == to_.claim.expectations.end())
      throw InvalidArgument(fmt::format(
          "the claim expects nothing of {}; give {{arm = ..., expected = ..., margin = ...}}", arm));
    return *expectation;
  }

  PublishedRow published(const TomlEntry& entry) const {
    PublishedRow row;
    const toml::table& from = table(entry, published_keys);
    for (const std::string_view key : {"row", "baseline", "arm"}) require(entry, key);
    read_text(from, "row", row.name);
    read_arm(from, "baseline", row.baseline);
    read_arm(from, "arm", row.arm);
    read_number(from, "paper_baseline", row.paper_baseline);
    read_number(from, "paper_arm", row.paper_arm);
    return row;
  }

  HarmTask harm_task(const TomlEntry& entry) const {
    HarmTask task;
    const toml::table& from = table(entry, harm_keys);
    for (const std::string_view key : {"name", "baseline"}) require(entry, key);
    read_text(from, "name", task.name);
    read_arm(from, "baseline", task.baseline);
    read_enum(from, "loss", task.loss);
    read_enum(from, "set", task.set);
    return task;
  }

  Sentence sentence(const TomlEntry& entry) const {
    if (entry.value->is_string()) return {.text = checked(file_.text(entry))};
    Sentence result;
    const toml::table& from = table(entry, sentence_keys);
    require(entry, "text");
    read_words(from, "text", result.text);
    read_words(from, "otherwise", result.otherwise);
    read_words(from, "closing", result.closing);
    read_text(from, "join", result.join);
    file_.with_entry(from, "when", [&](const TomlEntry& conditions) {
      result.when = list<Expectation>(conditions, [&](const TomlEntry& one) { return condition(one); });
    });
    file_.with_entry(from, "items", [&](const TomlEntry& items) {
      result.items = list<Sentence>(items, [&](const TomlEntry& one) { return sentence(one); });
    });
    return result;
  }

  void read_words(const toml::table& table, std::string_view key, std::string& to) const {
    file_.with_entry(table, key, [&](const TomlEntry& entry) { to = checked(file_.text(entry)); });
  }

  /// A text whose placeholders name what there is.
  std::string checked(std::string text) const {
    for (const std::string_view placeholder : placeholders(text)) check(parse_placeholder(placeholder));
    return text;
  }

  void check(const Placeholder& placeholder) const {
    using Kind = Placeholder::Kind;
    if (placeholder.kind == Kind::finding) {
      if (std::ranges::find(to_.analyses, placeholder.subject) == to_.analyses.end())
        throw InvalidArgument(
            unknown_name("analysis of this file", placeholder.subject, views(to_.analyses)));
      if (!placeholder.other.empty()) (void)to_.arm(placeholder.other);
      return;
    }
    (void)to_.arm(placeholder.subject);
    if (placeholder.kind != Kind::column) {
      (void)to_.arm(placeholder.other);
    } else if (std::ranges::find(known_.columns, placeholder.other) == known_.columns.end()) {
      throw InvalidArgument(unknown_name("column", placeholder.other, known_.columns));
    }
  }

  const TomlFile& file_;
  const KnownNames& known_;
  Experiment& to_;
};

}  // namespace

void read_judgement(const TomlFile& file, const KnownNames& known, Experiment& experiment) {
  JudgementReader(file, known, experiment).read();
}

}  // namespace halfscope
