// Tensors in what a restricted pickle of PyTorch's has built: names, storages, views.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/detail/flat_places.hpp>
#include <halfscope/io/pickle/detail/pickle_machine.hpp>
#include <halfscope/io/pickle/detail/torch_globals.hpp>

namespace halfscope {

/// A tensor by its path through the containers: "state_dict.fc.weight", "optimizer.state.0.exp_avg".
struct NamedTensor {
  std::string name;
  ValueId value = 0;
};

/// The tensors and closed objects below `root`, in the order in which the containers have them; a tensor that
/// is the root itself is called `alone`. Throws InvalidArgument for containers that are nested deeper than
/// 64, or that refer to each other so often that more than `PickleMachine::most_values` are met.
[[nodiscard]] std::vector<NamedTensor> tensors_below(const PickleMachine& pickle, ValueId root,
                                                     std::string_view alone);

/// A storage as a pickle tells of it.
struct TorchStorage {
  std::string_view key;
  TorchType type;  ///< an untyped storage's has no name
  std::uint64_t bytes = 0;
};
[[nodiscard]] TorchStorage storage_of(const PickleMachine& pickle, ValueId storage);

/// Where the bytes of a storage begin in the file, and their order. Throws InvalidArgument where the file has
/// no such storage, or one of another size.
struct StoragePlace {
  std::uint64_t begin = 0;
  std::endian order = std::endian::little;
};
using StorageFinder = std::function<StoragePlace(const TorchStorage& storage)>;

/// Adds `tensors` to `file`: what is no floating-point tensor is skipped by its type, a closed object by its
/// class. Throws InvalidArgument
/// for a view that reaches beyond its storage.
void add_torch_tensors(const PickleMachine& pickle, const std::vector<NamedTensor>& tensors,
                       const StorageFinder& find, FlatTensorFile& file);

}  // namespace halfscope
