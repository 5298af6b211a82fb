// Globals, and what a call of one builds: a container, a tensor, or a value that leads to none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/pickle/detail/pickle_machine.hpp>
#include <halfscope/io/pickle/detail/torch_globals.hpp>

namespace halfscope {
namespace {

/// Modules whose functions run programs or Python, or reach into other objects: pickles that attack name
/// them.
constexpr std::array<std::string_view, 36> modules_that_run{
    "os",       "posix",    "nt",       "subprocess", "sys",      "io",       "shutil",     "socket",
    "runpy",    "pty",      "code",     "codeop",     "commands", "ctypes",   "importlib",  "pickle",
    "_pickle",  "marshal",  "operator", "timeit",     "pip",      "bdb",      "pdb",        "asyncio",
    "urllib",   "http",     "requests", "types",      "inspect",  "builtins", "webbrowser", "tempfile",
    "platform", "cProfile", "trace",    "__builtin__"};
/// Classes among the builtins.
constexpr std::array<std::string_view, 8> plain_builtins{"object", "slice", "range", "frozenset",
                                                         "bytes",  "str",   "bool",  "tuple"};

bool serves_to_run_code(std::string_view module, std::string_view name) {
  const auto has = [](const auto& names, std::string_view wanted) {
    return std::ranges::find(names, wanted) != names.end();
  };
  if (name.find("__") != std::string_view::npos) return true;
  if (!has(modules_that_run, module.substr(0, module.find('.')))) return false;
  return !(module.ends_with("builtins") || module == "__builtin__") || !has(plain_builtins, name);
}

}  // namespace

std::string_view PickleMachine::text(ValueId id) const {
  const PickleValue& value = values_[id];
  if (value.kind != ValueKind::text) fail("expected a text");
  return value.text;
}

std::int64_t PickleMachine::integer(ValueId id) const {
  const PickleValue& value = values_[id];
  if (value.kind != ValueKind::integer) fail("expected a whole number of at most 64 bits");
  return value.integer;
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  const auto found = std::ranges::find_if(
      torch_globals, [&](const TorchGlobal& known) { return known.module == module && known.name == name; });
  if (found == torch_globals.end()) {
    const std::string full = fmt::format("{}.{}", module.substr(0, 100), name.substr(0, 100));
    if (serves_to_run_code(module, name))
      fail(fmt::format(
          "it names {}, which serves to run code, and no checkpoint needs; nothing is imported or "
          "run. Do not load the file in Python",
          excerpt(full)));
    push({.kind = ValueKind::closed, .text = *classes_.insert(full).first});
    return;
  }
  push({ValueKind::global, found - torch_globals.begin()});
}

void PickleMachine::global() {
  const std::string_view module = line();
  push_global(module, line());
}

void PickleMachine::global_of_stack() {
  const std::string_view name = text(pop());
  push_global(text(pop()), name);
}

/// PyTorch's are ("storage", type, key, device, elements, ...).
void PickleMachine::persistent() {
  const std::vector<ValueId>& parts = values_[pop()].items;
  if (parts.size() < 5 || text(parts[0]) != "storage")
    fail("a persistent id that is no storage of PyTorch's");
  const PickleValue& type = values_[parts[1]];
  if (type.kind != ValueKind::global ||
      torch_globals[static_cast<std::size_t>(type.integer)].kind != TorchGlobalKind::storage)
    fail("a storage without a type");
  const std::int64_t elements = integer(parts[4]);
  if (elements < 0) fail("a storage of less than no elements");
  const bool is_part = parts.size() > 5 && values_[parts[5]].kind != ValueKind::other;
  if (is_part) fail("a storage that is a part of another; save the file with a PyTorch of 2020 or later");
  push({ValueKind::storage, elements, text(parts[2]), {parts[1]}});
}

void PickleMachine::call() {
  const ValueId arguments = pop();
  const ValueId function = pop();
  call_global(function, arguments);
}

void PickleMachine::call_global(ValueId function, ValueId arguments) {
  if (values_[function].kind == ValueKind::closed) {
    push({.kind = ValueKind::closed, .text = values_[function].text});
    return;
  }
  if (values_[function].kind != ValueKind::global) fail("it calls what is no function");
  if (values_[arguments].kind != ValueKind::tuple) fail("it calls a function without a tuple of arguments");
  const TorchGlobal& global = torch_globals[static_cast<std::size_t>(values_[function].integer)];
  constexpr std::ptrdiff_t looked_at = 8;  // a copy, since a call may add values
  const auto& items = values_[arguments].items;
  const std::vector<ValueId> given(items.begin(), items.begin() + std::min(looked_at, std::ssize(items)));
  const auto need = [&](std::size_t count) {
    if (given.size() < count) fail(fmt::format("it calls {} with {} arguments", global.name, given.size()));
  };
  switch (global.kind) {
    case TorchGlobalKind::dict:
      return push_dict(given);
    case TorchGlobalKind::tensor:
      need(4);
      return push_tensor(given, given[0]);
    case TorchGlobalKind::typed_tensor:
      need(7);
      return push_tensor(given, given[6]);
    case TorchGlobalKind::tuple:
    case TorchGlobalKind::parameter:
      need(1);
      return push_again(given[0]);
    case TorchGlobalKind::of_subclass: {
      need(3);
      const PickleValue& inner = values_[given[0]];
      const bool again = inner.kind == ValueKind::global && inner.integer == values_[function].integer;
      if (again) fail("a tensor of a subclass within another");
      return call_global(given[0], given[2]);
    }
    case TorchGlobalKind::unread_tensor:
      push({.kind = ValueKind::tensor, .text = global.name});
      return;
    case TorchGlobalKind::plain:
      return push_other();
    case TorchGlobalKind::bytes:
      push({.kind = ValueKind::closed, .text = "bytes"});
      return;
    case TorchGlobalKind::storage:
    case TorchGlobalKind::type:
      break;
  }
  fail(fmt::format("it calls {}, which is no function", global.name));
}

/// Python 2 wrote an OrderedDict with its pairs as the argument.
void PickleMachine::push_dict(const std::vector<ValueId>& arguments) {
  PickleValue dict{ValueKind::dict};
  if (arguments.size() == 1 && values_[arguments[0]].kind == ValueKind::list) {
    copied_ += values_[arguments[0]].items.size();
    if (copied_ > most_values) fail(fmt::format("more than {} values", most_values));
    for (const ValueId pair : values_[arguments[0]].items) {
      const std::vector<ValueId>& both = values_[pair].items;
      if (both.size() != 2) fail("a dictionary of what are no pairs");
      dict.items.insert(dict.items.end(), both.begin(), both.end());
    }
  }
  push(std::move(dict));
}

void PickleMachine::push_tensor(const std::vector<ValueId>& arguments, ValueId type) {
  if (values_[arguments[0]].kind != ValueKind::storage) fail("a tensor without a storage");
  constexpr std::size_t most_axes = 64;  // as PyTorch has
  const std::int64_t offset = integer(arguments[1]);
  if (values_[arguments[2]].items.size() > most_axes)
    fail(fmt::format("a tensor of more than {} axes", most_axes));
  if (offset < 0 || values_[arguments[2]].items.size() != values_[arguments[3]].items.size())
    fail("a tensor whose offset, size and strides do not belong together");
  for (const ValueId extents : {arguments[2], arguments[3]}) {
    if (values_[extents].kind != ValueKind::tuple) fail("a tensor whose size or strides are no tuple");
    for (const ValueId extent : values_[extents].items) {
      if (integer(extent) < 0) fail("a tensor with a negative size or stride");
    }
  }
  push({ValueKind::tensor, offset, {}, {arguments[0], arguments[2], arguments[3], type}});
}

/// NEWOBJ_EX: a class, arguments, and arguments by name.
void PickleMachine::call_with_names() {
  static_cast<void>(pop());
  call();
}

/// The state is left out: attributes of a dictionary or of a tensor hold no elements.
void PickleMachine::build() {
  static_cast<void>(pop());
  const ValueKind kind = values_[top()].kind;
  const bool has_state = kind == ValueKind::dict || kind == ValueKind::tensor || kind == ValueKind::closed;
  if (!has_state) fail("it sets the state of what has none");
}

}  // namespace halfscope
