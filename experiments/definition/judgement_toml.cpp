// Writes claims, the paper's tables, analyses and verdicts as TOML.
#include <fmt/format.h>

#include <string>

#include "experiments/definition/judgement_file.hpp"

namespace halfscope {
namespace {

/// Members of an inline table, "key = value" each; empty values are left out.
class InlineTable {
 public:
  InlineTable& text(std::string_view key, const std::string& value) {
    return value.empty() ? *this : add(key, toml_quoted(value));
  }
  InlineTable& add(std::string_view key, const std::string& value) {
    text_ += fmt::format("{}{} = {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  [[nodiscard]] std::string str() const { return "{ " + text_ + " }"; }

 private:
  std::string text_;
};

template <typename Element, typename Write>
std::string list_of(const std::vector<Element>& elements, const Write& write) {
  std::string list;
  for (const Element& element : elements) list += (list.empty() ? "" : ", ") + write(element);
  return "[" + list + "]";
}

std::string expectation_text(const Expectation& expectation) {
  InlineTable table;
  table.text("arm", expectation.arm).text("baseline", expectation.baseline);
  table.text("expected", std::string(name_of(expectation.expected)));
  table.add("margin", fmt::format("{}", expectation.margin));
  return table.text("reason", expectation.reason).str();
}

std::string sentence_text(const Sentence& sentence) {
  if (sentence == Sentence{.text = sentence.text}) return toml_quoted(sentence.text);
  const Sentence usual;
  InlineTable table;
  table.add("text", toml_quoted(sentence.text));
  if (!sentence.when.empty()) table.add("when", list_of(sentence.when, expectation_text));
  table.text("otherwise", sentence.otherwise);
  if (!sentence.items.empty()) table.add("items", list_of(sentence.items, sentence_text));
  if (sentence.join != usual.join) table.add("join", toml_quoted(sentence.join));
  if (sentence.closing != usual.closing) table.add("closing", toml_quoted(sentence.closing));
  return table.str();
}

/// An element per line.
template <typename Element, typename Write>
std::string lines_of(std::string_view key, const std::vector<Element>& elements, const Write& write) {
  std::string lines;
  for (const Element& element : elements) lines += "  " + write(element) + ",\n";
  return fmt::format("{} = [\n{}]\n", key, lines);
}

std::string number_line(std::string_view key, const std::optional<double>& number) {
  return number ? fmt::format("{} = {}\n", key, *number) : "";
}

std::string published_text(const PublishedRow& row) {
  return fmt::format("\n[[published]]\nrow = {}\nbaseline = {}\narm = {}\n{}{}", toml_quoted(row.name),
                     toml_quoted(row.baseline), toml_quoted(row.arm),
                     number_line("paper_baseline", row.paper_baseline),
                     number_line("paper_arm", row.paper_arm));
}

std::string harm_task_text(const HarmTask& task) {
  return fmt::format("\n[[harm_task]]\nname = {}\nbaseline = {}\nloss = {}\nset = {}\n",
                     toml_quoted(task.name), toml_quoted(task.baseline), toml_quoted(name_of(task.loss)),
                     toml_quoted(name_of(task.set)));
}

}  // namespace

std::string judgement_head(const Experiment& experiment) {
  std::string text;
  if (!experiment.analyses.empty()) text += fmt::format("analyses = {}\n", toml_list(experiment.analyses));
  if (!experiment.verdict.empty()) text += lines_of("verdict", experiment.verdict, sentence_text);
  return text;
}

std::string judgement_tables(const Experiment& experiment) {
  std::string text;
  if (!experiment.claim.text.empty()) {
    text += fmt::format("\n[claim]\ntext = {}\n", toml_quoted(experiment.claim.text));
    if (!experiment.claim.expectations.empty())
      text += lines_of("expect", experiment.claim.expectations, expectation_text);
  }
  for (const PublishedRow& row : experiment.published) text += published_text(row);
  for (const HarmTask& task : experiment.harm_tasks) text += harm_task_text(task);
  return text;
}

}  // namespace halfscope
