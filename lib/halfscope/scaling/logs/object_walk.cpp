// Brackets of objects, and the fields between them.
#include <halfscope/scaling/detail/object_walk.hpp>

#include <algorithm>

namespace halfscope {
namespace {

constexpr std::size_t deepest = 32;

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// Whether an object that a line breaks off goes on in the next.
bool ends_open(std::string_view text) {
  constexpr std::string_view marks = ",:[{";
  const std::string_view rest = without_blanks(text);
  return !rest.empty() && marks.find(rest.back()) != std::string_view::npos;
}

/// "{" and "[{" alone, as indented JSON begins.
bool is_first_bracket(std::string_view text) {
  const std::string_view rest = without_blanks(text);
  return rest == "{" || rest == "[{" || rest == "[";
}

/// Place of an object's brace in a line, with its first name behind it.
std::size_t object_in(std::string_view text) {
  const auto is_object = [&](std::size_t at) { return text[at + 1] == '"' || text[at + 1] == '\''; };
  std::size_t at = text.find('{');
  while (at != std::string_view::npos && (at + 1 == text.size() || !is_object(at)))
    at = text.find('{', at + 1);
  return at;
}

/// The last name in front of a bracket: "eval" of "\"eval\": {".
std::string_view name_before(std::string_view text) {
  constexpr std::string_view marks = " :=\"'";
  const std::size_t last = text.find_last_not_of(marks);
  if (last == std::string_view::npos) return {};
  const std::size_t before = text.find_last_of(marks, last);
  return text.substr(before + 1, last - before);  // npos + 1 is 0
}

}  // namespace

ObjectWalk::Part ObjectWalk::line(std::string_view text, std::int64_t number, const RecordSink& sink) {
  has_step_ = false;
  if (!open_.empty() && without_blanks(text).empty()) return Part::open;
  if (!open_.empty() && !goes_on_with(without_blanks(text))) open_.clear();
  if (open_.empty() && is_first_bracket(text)) {
    // A bracket alone begins nothing but JSON.
    return walk(text, number, sink) == std::string_view::npos ? Part::none : Part::open;
  }
  if (open_.empty()) return begin(text, number, sink);
  const std::size_t end = walk(text, number, sink);
  if (end == std::string_view::npos || !open_.empty()) return Part::open;
  const Part rest = begin(text.substr(end), number, sink);
  return rest == Part::none ? Part::open : rest;
}

ObjectWalk::Part ObjectWalk::begin(std::string_view text, std::int64_t number, const RecordSink& sink) {
  for (std::size_t at = object_in(text); at != std::string_view::npos; at = object_in(text)) {
    text.remove_prefix(at);
    const std::size_t end = walk(text, number, sink);
    if (end == std::string_view::npos) return Part::open;
    if (!open_.empty()) {
      if (!ends_open(text)) open_.clear();
      return Part::open;
    }
    text.remove_prefix(end);
  }
  return has_step_ ? Part::whole : Part::none;
}

/// Members begin with a quote; a list that is no member holds objects.
bool ObjectWalk::goes_on_with(std::string_view text) const {
  const bool is_list = open_.back().opening == '[', is_member = is_list && open_.size() > 1;
  const std::string_view fronts = is_member ? "{[]\"'0123456789-+.ntfNI" : is_list ? "{]" : "\"'}";
  return fronts.find(text.front()) != std::string_view::npos;
}

std::size_t ObjectWalk::walk(std::string_view text, std::int64_t number, const RecordSink& sink) {
  std::size_t from = 0;  // behind the last bracket
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[' || c == '}' || c == ']') {
      const std::string_view before = text.substr(from, at - from);
      take_fields(before);
      const bool fits = c == '{' || c == '[' ? open(before, c, number) : close(c, sink);
      if (!fits) {
        open_.clear();
        return std::string_view::npos;
      }
      if (open_.empty()) return at + 1;
      from = at + 1;
    }
  }
  if (quote != 0) {
    open_.clear();
    return std::string_view::npos;
  }
  take_fields(text.substr(from));
  return text.size();
}

/// In an object a bracket stands behind a colon, or in a call: "tensor([".
bool ObjectWalk::open(std::string_view before, char bracket, std::int64_t number) {
  const std::string_view rest = without_blanks(before);
  const bool is_outermost = open_.empty(), in_list = !is_outermost && open_.back().opening == '[';
  if (!is_outermost && !in_list && (rest.empty() || !(rest.ends_with(':') || rest.ends_with('('))))
    return false;
  if (open_.size() == deepest) return false;
  const bool in_evaluation = !is_outermost && open_.back().is_evaluation;
  open_.push_back({.opening = bracket,
                   .is_evaluation = in_evaluation || is_evaluation(name_before(rest)),
                   .is_entry = in_list,
                   .record = {.line = number}});
  return true;
}

bool ObjectWalk::close(char bracket, const RecordSink& sink) {
  if (open_.empty() || open_.back().opening != (bracket == '}' ? '{' : '[')) return false;
  Container closed = std::move(open_.back());
  open_.pop_back();
  if (closed.is_evaluation) return true;
  LogRecord& record = closed.record;
  const bool is_own = open_.empty() || (closed.is_entry && bracket == '}' && record.has_values());
  if (is_own && record.has_step()) {
    has_step_ = true;
    sink(record);
  } else if (!open_.empty()) {
    for (const auto& field : record.fields)
      if (field) open_.back().record.take(*field);
    LogRecord& outer = open_.back().record;
    outer.has_other_scales = outer.has_other_scales || record.has_other_scales;
    outer.others.insert(outer.others.end(), record.others.begin(), record.others.end());
  }
  return true;
}

void ObjectWalk::take_fields(std::string_view text) {
  if (open_.empty() || text.empty()) return;
  fields_.clear();
  find_log_fields(text, names_, fields_);
  for (const LogField& field : fields_) open_.back().record.take(field);
}

}  // namespace halfscope
