// Values that a restricted pickle builds: numbers, texts, containers, and tensors with their storages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope {

/// The place of a value in its machine.
using ValueId = std::uint32_t;

enum class ValueKind : std::uint8_t {
  other,    ///< None, a truth value, a float, a set: nothing that leads to a tensor
  integer,  ///< that 64 bits hold
  text,     ///< str
  tuple,
  list,
  dict,    ///< keys and values in turn
  global,  ///< one of torch_globals
  storage,
  tensor,
  closed,  ///< bytes, an object of a class that is not among torch_globals, or that class: stays unknown
};

struct PickleValue {
  ValueKind kind = ValueKind::other;
  /// The number; elements of a storage; offset of a tensor in its storage; place of a global in
  /// torch_globals.
  std::int64_t integer = 0;
  std::string_view
      text{};  ///< the text; key of a storage; why a tensor is not read; class of a closed object
  /// Elements of a container. A storage has its type, a tensor its storage, size, strides and type (or none).
  std::vector<ValueId> items{};
};

}  // namespace halfscope
