// Events of nlohmann's parser, put together to one member's value at a time.
#include <halfscope/io/json/detail/json_members.hpp>

#include <nlohmann/json.hpp>

#include <vector>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/json/detail/json_errors.hpp>

namespace halfscope {
namespace {

class MemberBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  MemberBuilder(std::string_view where, const MemberSink& sink) : where_(where), sink_(sink) {}

  /// Whether the text was an object.
  [[nodiscard]] bool is_object() const { return is_object_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return true; }  // JSON text has none
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    return open(nlohmann::json::object());
  }
  bool start_array(std::size_t) override { return open(nlohmann::json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.empty()) {
      name_ = std::move(name);
    } else {
      if (open_.back()->contains(name)) refuse_json_key(where_, name);
      key_ = std::move(name);
    }
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) override {
    refuse_json_syntax(where_, byte, error);
  }

 private:
  /// Where the value is to stand: in the innermost open one, or as the member itself.
  nlohmann::json* place(nlohmann::json&& value) {
    if (++values_ > most_member_values) {
      refuse(where_, fmt::format("{} has more than {} values", excerpt(name_), most_member_values));
    }
    if (open_.empty()) return &(member_ = std::move(value));
    nlohmann::json& outer = *open_.back();
    if (outer.is_array()) return &outer.emplace_back(std::move(value));
    return &(outer[std::move(key_)] = std::move(value));
  }

  bool add(nlohmann::json&& value) {
    if (!is_object_) return true;
    place(std::move(value));
    if (open_.empty()) finish();
    return true;
  }

  bool open(nlohmann::json&& value) {
    if (depth_ == deepest_json) refuse_json_depth(where_);
    if (depth_++ > 0 && is_object_) open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    --depth_;
    if (open_.empty()) return true;
    open_.pop_back();
    if (open_.empty()) finish();
    return true;
  }

  void finish() {
    sink_(name_, member_);
    member_ = nullptr;
    values_ = 0;
  }

  std::string_view where_;
  const MemberSink& sink_;
  bool is_object_ = false;
  std::size_t depth_ = 0, values_ = 0;
  std::string name_, key_;
  nlohmann::json member_;
  std::vector<nlohmann::json*> open_;  // within member_; none of them moves while one inside it is open
};

}  // namespace

bool read_json_members(std::string_view text, std::string_view where, const MemberSink& sink) {
  MemberBuilder builder(where, sink);
  nlohmann::json::sax_parse(text, &builder);
  return builder.is_object();
}

}  // namespace halfscope
