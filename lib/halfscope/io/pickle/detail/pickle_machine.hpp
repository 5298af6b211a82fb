// A machine for Python's pickles that builds containers and tensors, and can do nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <halfscope/io/pickle/detail/pickle_value.hpp>

namespace halfscope {

/// Goes through the opcodes of one pickle after the other. It imports nothing and calls nothing: a global is
/// a line of torch_globals, and a call of one builds a value. Any other global, and what its call would
/// build, is a closed object, of which nothing but the name is known; one that serves to run code is refused.
/// Memory is bounded by `most_values` and the bytes, however they refer to each other. Throws InvalidArgument
/// with the byte for such a global, by its name, for any other opcode, for a pickle that breaks its format,
/// and for one of too many values.
class PickleMachine {
 public:
  static constexpr std::size_t most_values = std::size_t{1} << 22;

  /// `bytes` outlive the machine; `where` names them in messages.
  PickleMachine(std::string_view bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  /// Runs up to the next STOP, and returns what it left.
  [[nodiscard]] ValueId run();
  [[nodiscard]] const PickleValue& operator[](ValueId id) const { return values_[id]; }
  /// Values of all pickles so far: ids are below.
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// The byte behind the last pickle.
  [[nodiscard]] std::size_t position() const { return at_; }
  /// Throws InvalidArgument with the byte.
  [[nodiscard]] std::string_view text(ValueId id) const;
  [[nodiscard]] std::int64_t integer(ValueId id) const;
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  struct Opcode;
  static const Opcode opcodes[];
  static const Opcode* find_opcode(unsigned char code);

  // Bytes.
  [[nodiscard]] std::string_view take(std::uint64_t count);
  [[nodiscard]] std::uint64_t number(std::size_t width);
  [[nodiscard]] std::string_view line();

  // Values and the stack.
  ValueId push(PickleValue value);
  [[nodiscard]] ValueId pop();
  [[nodiscard]] ValueId top() const;
  [[nodiscard]] std::vector<ValueId> pop_to_mark();
  [[nodiscard]] PickleValue& container_on_top(ValueKind kind);
  [[nodiscard]] bool is_closed_on_top() const { return values_[top()].kind == ValueKind::closed; }
  void push_again(ValueId id);

  // Opcodes.
  void proto();
  void frame();
  void stop() { stopped_ = true; }
  void mark() { marks_.push_back(stack_.size()); }
  void drop() { static_cast<void>(pop()); }
  void drop_to_mark() { static_cast<void>(pop_to_mark()); }
  void duplicate() { push_again(top()); }
  void push_other() { push({}); }
  template <std::size_t width>
  void push_integer();
  template <std::size_t width>
  void push_long();
  void push_float();
  template <std::size_t width>
  void push_text();
  template <std::size_t width>
  void push_bytes();
  template <ValueKind kind>
  void push_empty();
  template <std::size_t count>
  void push_tuple();
  void tuple_to_mark();
  void set_to_mark();
  void append();
  void append_to_mark();
  void drop_items();
  void set_item();
  void set_items_to_mark();
  template <std::size_t width>
  void get();
  template <std::size_t width>
  void put();
  void memoize();
  void global();
  void global_of_stack();
  void persistent();
  void call();
  void call_with_names();
  void build();

  void push_global(std::string_view module, std::string_view name);
  void remember(std::uint64_t place);
  void call_global(ValueId function, ValueId arguments);
  void push_dict(const std::vector<ValueId>& arguments);
  void push_tensor(const std::vector<ValueId>& arguments, ValueId type);

  std::string_view bytes_, where_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  std::vector<PickleValue> values_{};
  std::vector<ValueId> stack_{};
  std::vector<std::size_t> marks_{};  ///< heights of the stack
  std::size_t copied_ = 0;            ///< pairs, from lists to dictionaries
  std::unordered_map<std::uint64_t, ValueId> memo_{};
  std::set<std::string, std::less<>> classes_{};  ///< names of those of closed objects
};

}  // namespace halfscope
