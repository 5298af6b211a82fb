// One line for each opcode of Python's pickle protocols 0 to 5; those without a function are refused by name.
#include <halfscope/io/pickle/detail/pickle_machine.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {

struct PickleMachine::Opcode {
  unsigned char code;
  std::string_view name;
  void (PickleMachine::*run)();
};

const PickleMachine::Opcode PickleMachine::opcodes[] = {
    {0x80, "PROTO", &PickleMachine::proto},
    {0x95, "FRAME", &PickleMachine::frame},
    {'.', "STOP", &PickleMachine::stop},
    {'(', "MARK", &PickleMachine::mark},
    {'0', "POP", &PickleMachine::drop},
    {'1', "POP_MARK", &PickleMachine::drop_to_mark},
    {'2', "DUP", &PickleMachine::duplicate},
    {'N', "NONE", &PickleMachine::push_other},
    {0x88, "NEWTRUE", &PickleMachine::push_other},
    {0x89, "NEWFALSE", &PickleMachine::push_other},
    {'K', "BININT1", &PickleMachine::push_integer<1>},
    {'M', "BININT2", &PickleMachine::push_integer<2>},
    {'J', "BININT", &PickleMachine::push_integer<4>},
    {0x8a, "LONG1", &PickleMachine::push_long<1>},
    {0x8b, "LONG4", &PickleMachine::push_long<4>},
    {'G', "BINFLOAT", &PickleMachine::push_float},
    {'U', "SHORT_BINSTRING", &PickleMachine::push_text<1>},
    {'T', "BINSTRING", &PickleMachine::push_text<4>},
    {'C', "SHORT_BINBYTES", &PickleMachine::push_bytes<1>},
    {'B', "BINBYTES", &PickleMachine::push_bytes<4>},
    {0x8e, "BINBYTES8", &PickleMachine::push_bytes<8>},
    {0x8c, "SHORT_BINUNICODE", &PickleMachine::push_text<1>},
    {'X', "BINUNICODE", &PickleMachine::push_text<4>},
    {0x8d, "BINUNICODE8", &PickleMachine::push_text<8>},
    {0x96, "BYTEARRAY8", &PickleMachine::push_bytes<8>},
    {')', "EMPTY_TUPLE", &PickleMachine::push_empty<ValueKind::tuple>},
    {'t', "TUPLE", &PickleMachine::tuple_to_mark},
    {0x85, "TUPLE1", &PickleMachine::push_tuple<1>},
    {0x86, "TUPLE2", &PickleMachine::push_tuple<2>},
    {0x87, "TUPLE3", &PickleMachine::push_tuple<3>},
    {']', "EMPTY_LIST", &PickleMachine::push_empty<ValueKind::list>},
    {'a', "APPEND", &PickleMachine::append},
    {'e', "APPENDS", &PickleMachine::append_to_mark},
    {0x8f, "EMPTY_SET", &PickleMachine::push_other},
    {0x90, "ADDITEMS", &PickleMachine::drop_items},
    {0x91, "FROZENSET", &PickleMachine::set_to_mark},
    {'}', "EMPTY_DICT", &PickleMachine::push_empty<ValueKind::dict>},
    {'s', "SETITEM", &PickleMachine::set_item},
    {'u', "SETITEMS", &PickleMachine::set_items_to_mark},
    {'h', "BINGET", &PickleMachine::get<1>},
    {'j', "LONG_BINGET", &PickleMachine::get<4>},
    {'q', "BINPUT", &PickleMachine::put<1>},
    {'r', "LONG_BINPUT", &PickleMachine::put<4>},
    {0x94, "MEMOIZE", &PickleMachine::memoize},
    {'c', "GLOBAL", &PickleMachine::global},
    {0x93, "STACK_GLOBAL", &PickleMachine::global_of_stack},
    {'Q', "BINPERSID", &PickleMachine::persistent},
    {'R', "REDUCE", &PickleMachine::call},
    {0x81, "NEWOBJ", &PickleMachine::call},
    {0x92, "NEWOBJ_EX", &PickleMachine::call_with_names},
    {'b', "BUILD", &PickleMachine::build},
    {'P', "PERSID", nullptr},
    {'i', "INST", nullptr},
    {'o', "OBJ", nullptr},
    {0x82, "EXT1", nullptr},
    {0x83, "EXT2", nullptr},
    {0x84, "EXT4", nullptr},
    {0x97, "NEXT_BUFFER", nullptr},
    {0x98, "READONLY_BUFFER", nullptr},
    {'I', "INT", nullptr},
    {'L', "LONG", nullptr},
    {'F', "FLOAT", nullptr},
    {'S', "STRING", nullptr},
    {'V', "UNICODE", nullptr},
    {'g', "GET", nullptr},
    {'p', "PUT", nullptr},
    {'l', "LIST", nullptr},
    {'d', "DICT", nullptr},
};

const PickleMachine::Opcode* PickleMachine::find_opcode(unsigned char code) {
  static const auto by_code = [] {
    std::array<const Opcode*, 256> table{};
    for (const Opcode& opcode : opcodes) table[opcode.code] = &opcode;
    return table;
  }();
  return by_code[code];
}

ValueId PickleMachine::run() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (stopped_ = false; !stopped_;) {
    const auto code = static_cast<unsigned char>(take(1)[0]);
    const Opcode* const opcode = find_opcode(code);
    if (opcode == nullptr) fail(fmt::format("{:#04x} is no opcode of a pickle", code));
    if (opcode->run == nullptr) fail(fmt::format("the opcode {} is not followed", opcode->name));
    (this->*opcode->run)();
  }
  return pop();
}

void PickleMachine::fail(std::string_view problem) const {
  refuse(where_, fmt::format("byte {} of its pickle: {}", at_, problem));
}

std::string_view PickleMachine::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) fail("it ends in the middle");
  const std::string_view taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

std::uint64_t PickleMachine::number(std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(width).data(), width);
  return value;
}

std::string_view PickleMachine::line() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) fail("it ends in the middle");
  const std::string_view text = take(end - at_);
  ++at_;
  return text;
}

ValueId PickleMachine::push(PickleValue value) {
  if (values_.size() == most_values) fail(fmt::format("more than {} values", most_values));
  values_.push_back(std::move(value));
  const auto id = static_cast<ValueId>(values_.size() - 1);
  stack_.push_back(id);
  return id;
}

void PickleMachine::push_again(ValueId id) {
  if (stack_.size() == most_values) fail(fmt::format("more than {} values", most_values));
  stack_.push_back(id);
}

ValueId PickleMachine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("it takes more values than there are");
  return stack_.back();
}

ValueId PickleMachine::pop() {
  const ValueId id = top();
  stack_.pop_back();
  return id;
}

std::vector<ValueId> PickleMachine::pop_to_mark() {
  if (marks_.empty()) fail("it looks for a mark that is not there");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<ValueId> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::container_on_top(ValueKind kind) {
  PickleValue& value = values_[top()];
  if (value.kind != kind) fail("it fills a container that is none");
  return value;
}

void PickleMachine::proto() {
  const std::uint64_t protocol = number(1);
  if (protocol > 5) fail(fmt::format("protocol {} of pickle is not known", protocol));
}

void PickleMachine::frame() {
  static_cast<void>(number(8));
}

template <std::size_t width>
void PickleMachine::push_integer() {
  const std::uint64_t value = number(width);
  push({ValueKind::integer, width == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                                       : static_cast<std::int64_t>(value)});
}

/// Two's complement of any length.
template <std::size_t width>
void PickleMachine::push_long() {
  const std::string_view digits = take(number(width));
  if (digits.size() > sizeof(std::int64_t)) return push_other();
  const bool negative = !digits.empty() && static_cast<signed char>(digits.back()) < 0;
  std::int64_t value = negative ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  push({ValueKind::integer, value});
}

void PickleMachine::push_float() {
  static_cast<void>(take(8));
  push_other();
}

template <std::size_t width>
void PickleMachine::push_text() {
  const std::uint64_t size = number(width);
  push({.kind = ValueKind::text, .text = take(size)});
}

template <std::size_t width>
void PickleMachine::push_bytes() {
  static_cast<void>(take(number(width)));
  push({.kind = ValueKind::closed, .text = "bytes"});
}

template <ValueKind kind>
void PickleMachine::push_empty() {
  push({kind});
}

template <std::size_t count>
void PickleMachine::push_tuple() {
  PickleValue tuple{ValueKind::tuple};
  tuple.items.resize(count);
  for (auto item = tuple.items.rbegin(); item != tuple.items.rend(); ++item) *item = pop();
  push(std::move(tuple));
}

void PickleMachine::tuple_to_mark() {
  push({.kind = ValueKind::tuple, .items = pop_to_mark()});
}

void PickleMachine::set_to_mark() {
  drop_to_mark();
  push_other();
}

/// Items of a closed object stay unknown as the rest of it.
void PickleMachine::append() {
  const ValueId item = pop();
  if (is_closed_on_top()) return;
  container_on_top(ValueKind::list).items.push_back(item);
}

void PickleMachine::append_to_mark() {
  const std::vector<ValueId> items = pop_to_mark();
  if (is_closed_on_top()) return;
  std::vector<ValueId>& list = container_on_top(ValueKind::list).items;
  list.insert(list.end(), items.begin(), items.end());
}

void PickleMachine::drop_items() {
  drop_to_mark();
  if (!is_closed_on_top()) static_cast<void>(container_on_top(ValueKind::other));
}

void PickleMachine::set_item() {
  const ValueId value = pop(), key = pop();
  if (is_closed_on_top()) return;
  std::vector<ValueId>& items = container_on_top(ValueKind::dict).items;
  items.insert(items.end(), {key, value});
}

void PickleMachine::set_items_to_mark() {
  const std::vector<ValueId> added = pop_to_mark();
  if (added.size() % 2 != 0) fail("a key of a dictionary has no value");
  if (is_closed_on_top()) return;
  std::vector<ValueId>& items = container_on_top(ValueKind::dict).items;
  items.insert(items.end(), added.begin(), added.end());
}

template <std::size_t width>
void PickleMachine::get() {
  const auto found = memo_.find(number(width));
  if (found == memo_.end()) fail("it recalls what it has not remembered");
  push_again(found->second);
}

template <std::size_t width>
void PickleMachine::put() {
  remember(number(width));
}

void PickleMachine::memoize() {
  remember(memo_.size());
}

void PickleMachine::remember(std::uint64_t place) {
  memo_.insert_or_assign(place, top());
  if (memo_.size() > most_values) fail(fmt::format("more than {} values", most_values));
}

}  // namespace halfscope
