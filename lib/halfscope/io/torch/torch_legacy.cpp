// Five pickles: magic number, version, machine, the checkpoint, keys of its storages; then the storages, each
// after its number of elements.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/torch/detail/torch_file.hpp>
#include <halfscope/io/torch/detail/torch_tensors.hpp>

namespace halfscope {
namespace {

constexpr std::uint64_t largest_pickles = 1 << 25;
constexpr std::int64_t version = 1001;
constexpr std::uint64_t count_bytes = 8;

using Storages = std::map<std::string, TorchStorage, std::less<>>;

/// The storages that the pickles name, by their keys.
Storages storages_of(const PickleMachine& pickle) {
  Storages storages;
  for (ValueId id = 0; id < pickle.size(); ++id) {
    if (pickle[id].kind != ValueKind::storage) continue;
    const TorchStorage storage = storage_of(pickle, id);
    storages.emplace(storage.key, storage);
  }
  return storages;
}

/// The byte behind the element count of each storage, in the order of the keys.
std::map<std::string, std::uint64_t, std::less<>> places_of(const PickleMachine& pickle, ValueId keys,
                                                            const Storages& storages, const InputFile& file) {
  std::map<std::string, std::uint64_t, std::less<>> places;
  std::uint64_t at = pickle.position();
  for (const ValueId id : pickle[keys].items) {
    const std::string key(pickle.text(id));
    const auto storage = storages.find(key);
    if (storage == storages.end()) pickle.fail(fmt::format("storage {} is of no tensor", excerpt(key)));
    const std::uint64_t bytes = storage->second.bytes;
    if (bytes > file.size() || at > file.size() - bytes || count_bytes > file.size() - bytes - at) {
      refuse(file.name(), fmt::format("truncated: storage {} has {} bytes from byte {} on, the file {}",
                                      excerpt(key), bytes, at + count_bytes, file.size()));
    }
    std::uint64_t elements = 0;
    file.read(at, std::as_writable_bytes(std::span(&elements, 1)));
    if (elements * storage->second.type.bytes != bytes)
      refuse(file.name(), fmt::format("byte {}: storage {} has {} elements, its pickle says {} bytes", at,
                                      excerpt(key), elements, bytes));
    places.emplace(key, at + count_bytes);
    at += count_bytes + bytes;
  }
  return places;
}

}  // namespace

std::unique_ptr<TensorFile> open_torch_legacy(InputFile file, std::string_view name) {
  std::string bytes(std::min(file.size(), largest_pickles), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  const std::string where = file.name();
  PickleMachine pickle(bytes, where);
  static_cast<void>(pickle.run());
  if (pickle.integer(pickle.run()) != version)
    pickle.fail("a format of PyTorch's that is neither its first nor its second");
  static_cast<void>(pickle.run());
  const ValueId root = pickle.run(), keys = pickle.run();
  const std::vector<NamedTensor> tensors = tensors_below(pickle, root, name);
  const auto places = places_of(pickle, keys, storages_of(pickle), file);
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  add_torch_tensors(
      pickle, tensors,
      [&](const TorchStorage& storage) -> StoragePlace {
        const auto place = places.find(storage.key);
        if (place == places.end())
          refuse(where, fmt::format("storage {} is not listed", excerpt(storage.key)));
        return {place->second};
      },
      *opened);
  return opened;
}

}  // namespace halfscope
