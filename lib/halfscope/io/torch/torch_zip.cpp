// Storages lie uncompressed in the archive, and are read in place.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/npz/detail/inflate_stream.hpp>
#include <halfscope/io/torch/detail/torch_file.hpp>
#include <halfscope/io/torch/detail/torch_tensors.hpp>

namespace halfscope {
namespace {

constexpr std::string_view pickle_name = "data.pkl";
constexpr std::uint64_t largest_pickle = 1 << 25;  // 200,000 tensors

std::string contents_of(const ZipMember& member, const InputFile& file) {
  if (member.size > largest_pickle)
    refuse(place_of(member, file),
           fmt::format("{} bytes, over the limit of {}", member.size, largest_pickle));
  std::string bytes(member.size, '\0');
  const auto to = std::as_writable_bytes(std::span(bytes));
  if (member.packing == Packing::stored) {
    file.read(member.begin, to);
  } else {
    InflateStream(file, member).read(to);
  }
  return bytes;
}

/// The members of one archive of PyTorch's.
class TorchArchive {
 public:
  TorchArchive(const InputFile& file, const std::vector<ZipMember>& members, std::string_view prefix)
      : name_(file.name()), prefix_(prefix) {
    for (const ZipMember& member : members) members_.emplace(member.name, &member);
    const auto order = members_.find(prefix_ + "byteorder");
    if (order != members_.end() && contents_of(*order->second, file) == "big") order_ = std::endian::big;
  }

  [[nodiscard]] StoragePlace find(const TorchStorage& storage) const {
    const auto found = members_.find(prefix_ + "data/" + std::string(storage.key));
    if (found == members_.end())
      refuse(name_,
             fmt::format("its pickle names storage {}, which the archive lacks", excerpt(storage.key)));
    const ZipMember& member = *found->second;
    if (member.packing != Packing::stored)
      refuse(name_, fmt::format("storage {} is packed; unpack the archive and zip it with -0",
                                excerpt(storage.key)));
    if (member.size != storage.bytes)
      refuse(name_, fmt::format("storage {} has {} bytes in the archive, {} in the pickle",
                                excerpt(storage.key), member.size, storage.bytes));
    return {member.begin, order_};
  }

 private:
  std::string name_, prefix_;
  std::map<std::string, const ZipMember*, std::less<>> members_;
  std::endian order_ = std::endian::little;
};

}  // namespace

const ZipMember* find_torch_pickle(const std::vector<ZipMember>& members) {
  const auto found = std::ranges::find_if(members, [](const ZipMember& member) {
    const std::size_t slash = member.name.find('/');
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    return std::string_view(member.name).substr(begin) == pickle_name;
  });
  return found == members.end() ? nullptr : &*found;
}

std::unique_ptr<TensorFile> open_torch_zip(InputFile file, std::string_view name) {
  const std::vector<ZipMember> members = read_zip_directory(file);
  const ZipMember* const member = find_torch_pickle(members);
  if (member == nullptr) refuse(file.name(), "a zip archive without a data.pkl of PyTorch's");
  const std::string bytes = contents_of(*member, file), where = place_of(*member, file);
  PickleMachine pickle(bytes, where);
  const ValueId root = pickle.run();
  const std::string_view prefix =
      std::string_view(member->name).substr(0, member->name.size() - pickle_name.size());
  const TorchArchive archive(file, members, prefix);
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  add_torch_tensors(
      pickle, tensors_below(pickle, root, name),
      [&](const TorchStorage& storage) { return archive.find(storage); }, *opened);
  return opened;
}

}  // namespace halfscope
