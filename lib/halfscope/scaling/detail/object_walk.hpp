// Records of the objects in a log, each on one line or with a member on each.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {

/// Walks over objects of JSON and dictionaries of Python. The fields of an object within another are those of
/// the outer one, but for entries of a list, which have a step of their own, and for evaluations, which are
/// left out. An object that a line breaks off goes on in the next line where a comma, a colon or a bracket
/// ends the first; else it was cut, and tells nothing.
class ObjectWalk {
 public:
  explicit ObjectWalk(const LogColumns& columns) : names_(columns) {}

  using RecordSink = std::function<void(LogRecord& record)>;
  enum class Part : std::uint8_t {
    none,   ///< no object with a step
    whole,  ///< objects with a step
    open,   ///< part of an object, or a cut one
  };
  /// Hands over the records that have a step; `number` is the line's.
  Part line(std::string_view text, std::int64_t number, const RecordSink& sink);

 private:
  struct Container {
    char opening = '{';
    bool is_evaluation = false;
    bool is_entry = false;  ///< stands in a list
    LogRecord record{};
  };

  Part begin(std::string_view text, std::int64_t number, const RecordSink& sink);
  /// The place behind the outermost object, or the end of the line where it goes on; npos where it is none.
  std::size_t walk(std::string_view text, std::int64_t number, const RecordSink& sink);
  bool open(std::string_view before, char bracket, std::int64_t number);
  bool close(char bracket, const RecordSink& sink);
  void take_fields(std::string_view text);
  [[nodiscard]] bool goes_on_with(std::string_view text) const;

  LogNames names_;
  std::vector<LogField> fields_;
  std::vector<Container> open_;
  bool has_step_ = false;  ///< one of the line's records
};

}  // namespace halfscope
