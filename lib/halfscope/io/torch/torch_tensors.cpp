// Walks through dictionaries and lists, and checks views against the storages that they are of.
#include <halfscope/io/torch/detail/torch_tensors.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

constexpr std::size_t deepest_nesting = 64;
constexpr std::size_t most_torch_tensors = std::size_t{1} << 19, longest_names = std::size_t{1} << 27;
/// Elements that a view with strides of zero may repeat.
constexpr std::uint64_t most_repeated = std::uint64_t{1} << 24;

class TensorWalk {
 public:
  TensorWalk(const PickleMachine& pickle, std::vector<NamedTensor>& found) : pickle_(pickle), found_(found) {}

  /// `name` is that of the value; it is lengthened on the way down and cut on the way back, since a small
  /// pickle may lead here millions of times.
  void into(ValueId id, std::string& name, std::size_t depth) {
    if (depth > deepest_nesting)
      pickle_.fail(fmt::format("containers are nested deeper than {}", deepest_nesting));
    if (++met_ > PickleMachine::most_values)
      pickle_.fail(
          fmt::format("containers refer to each other more than {} times", PickleMachine::most_values));
    const PickleValue& value = pickle_[id];
    if (value.kind == ValueKind::tensor || value.kind == ValueKind::closed) add(name, id);
    if (value.kind == ValueKind::list || value.kind == ValueKind::tuple) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        below(value.items[i], std::to_string(i), name, depth);
    }
    if (value.kind == ValueKind::dict) {
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
        below(value.items[i + 1], key(value.items[i], i / 2), name, depth);
    }
  }

 private:
  void add(const std::string& name, ValueId id) {
    name_bytes_ += name.size();
    if (found_.size() == most_torch_tensors || name_bytes_ > longest_names)
      pickle_.fail(
          fmt::format("more than {} tensors, or {} bytes of names", most_torch_tensors, longest_names));
    found_.push_back({name, id});
  }
  void below(ValueId id, std::string_view part, std::string& name, std::size_t depth) {
    const std::size_t size = name.size();
    if (size > 0) name += '.';
    name += part;
    into(id, name, depth + 1);
    name.resize(size);
  }
  /// A key that is neither text nor number goes by its place.
  [[nodiscard]] std::string key(ValueId id, std::size_t place) const {
    const PickleValue& value = pickle_[id];
    if (value.kind == ValueKind::text) return std::string(value.text.substr(0, 1000));
    return std::to_string(value.kind == ValueKind::integer ? value.integer
                                                           : static_cast<std::int64_t>(place));
  }

  const PickleMachine& pickle_;
  std::vector<NamedTensor>& found_;
  std::size_t met_ = 0, name_bytes_ = 0;
};

std::vector<std::int64_t> extents_of(const PickleMachine& pickle, ValueId tuple) {
  std::vector<std::int64_t> numbers;
  for (const ValueId item : pickle[tuple].items) numbers.push_back(pickle.integer(item));
  return numbers;
}

TorchType torch_type_of(const PickleMachine& pickle, ValueId id) {
  return torch_globals[static_cast<std::size_t>(pickle[id].integer)].type;
}

/// A tensor as a view: elements are counted in its own type.
struct TorchView {
  std::vector<std::int64_t> shape, strides;
  std::uint64_t offset = 0, elements = 1;
};

/// Throws unless all elements of the view are among the `held` ones of its storage.
void check_view(TorchView& view, std::uint64_t held, const std::string& where) {
  view.elements = checked_size(view.shape, 1, where);
  std::uint64_t last = view.offset;
  for (std::size_t axis = 0; axis < view.shape.size() && view.elements > 0; ++axis) {
    std::uint64_t reach = 0;
    const auto steps = static_cast<std::uint64_t>(view.shape[axis] - 1),
               stride = static_cast<std::uint64_t>(view.strides[axis]);
    if (__builtin_mul_overflow(steps, stride, &reach) || __builtin_add_overflow(last, reach, &last))
      refuse(where, "its view has more elements than memory can hold");
  }
  if (view.elements > 0 && last >= held)
    refuse(where, fmt::format("its view reaches element {} of a storage of {}", last, held));
  if (view.elements > std::max(held, most_repeated))
    refuse(where, fmt::format("it repeats the {} elements of its storage to {}", held, view.elements));
}

}  // namespace

std::vector<NamedTensor> tensors_below(const PickleMachine& pickle, ValueId root, std::string_view alone) {
  std::vector<NamedTensor> found;
  const ValueKind kind = pickle[root].kind;
  if (kind == ValueKind::tensor || kind == ValueKind::closed) return {{std::string(alone), root}};
  std::string name;
  TensorWalk(pickle, found).into(root, name, 0);
  return found;
}

TorchStorage storage_of(const PickleMachine& pickle, ValueId storage) {
  const PickleValue& value = pickle[storage];
  TorchStorage found{value.text, torch_type_of(pickle, value.items[0])};
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(value.integer), found.type.bytes, &found.bytes))
    pickle.fail(fmt::format("storage {} has more elements than memory can hold", excerpt(found.key)));
  return found;
}

void add_torch_tensors(const PickleMachine& pickle, const std::vector<NamedTensor>& tensors,
                       const StorageFinder& find, FlatTensorFile& file) {
  for (const auto& [name, id] : tensors) {
    const PickleValue& value = pickle[id];
    if (value.kind == ValueKind::closed) {
      file.skip({name, fmt::format("an object of {}, which stays closed: nothing is imported or run",
                                   escaped(value.text))});
      continue;
    }
    if (value.items.empty()) {
      file.skip({name, fmt::format("of PyTorch's {}", value.text)});
      continue;
    }
    const std::string where = fmt::format("{}: tensor {}", file.file().name(), excerpt(name));
    const TorchStorage storage = storage_of(pickle, value.items[0]);
    const PickleValue& type_value = pickle[value.items[3]];
    const bool typed = type_value.kind == ValueKind::global;
    const TorchType type = typed ? torch_type_of(pickle, value.items[3]) : storage.type;
    if (!type.stored) {
      file.skip({name, type.name.empty() ? "a storage without a type" : fmt::format("dtype {}", type.name)});
      continue;
    }
    TorchView view{extents_of(pickle, value.items[1]), extents_of(pickle, value.items[2]),
                   static_cast<std::uint64_t>(value.integer)};
    check_view(view, storage.bytes / type.bytes, where);
    const StoragePlace place = find(storage);
    StridedView strided = strided_view(view.shape, view.strides);
    file.add({name, *type.stored, std::move(view.shape), static_cast<std::int64_t>(view.elements),
              Access::random, std::move(strided.order)},
             {place.begin + (view.elements > 0 ? view.offset * type.bytes : 0),
              {*type.stored, place.order},
              std::move(strided.axes)});
  }
}

}  // namespace halfscope
