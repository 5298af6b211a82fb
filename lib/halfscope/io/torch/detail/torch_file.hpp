// Checkpoints of PyTorch: what torch.save writes, in its two formats.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/npz/detail/zip_directory.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// The member of an archive that tells of its tensors, "archive/data.pkl"; nullptr where there is none.
[[nodiscard]] const ZipMember* find_torch_pickle(const std::vector<ZipMember>& members);

/// PyTorch's magic number, as the first pickle of a legacy file holds it in any protocol.
inline constexpr std::string_view legacy_torch_magic{"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12};
[[nodiscard]] inline bool is_legacy_torch(std::string_view first_bytes) {
  constexpr std::size_t reach = 32;  // behind the protocol, and in some a frame
  return first_bytes.starts_with('\x80') && first_bytes.substr(0, reach).find(legacy_torch_magic) < reach;
}

/// A zip archive with a pickle and a member for each storage (since PyTorch 1.6); `name` is that of a tensor
/// that is the whole file. No function of the pickle is called, see PickleMachine. Throws InvalidArgument.
[[nodiscard]] std::unique_ptr<TensorFile> open_torch_zip(InputFile file, std::string_view name);
/// Pickles one after the other, and the storages behind them.
[[nodiscard]] std::unique_ptr<TensorFile> open_torch_legacy(InputFile file, std::string_view name);

}  // namespace halfscope
