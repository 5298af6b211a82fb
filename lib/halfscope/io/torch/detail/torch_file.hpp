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

/// The bytes that a legacy file begins with: a pickle of PyTorch's magic number.
inline constexpr std::string_view legacy_torch_magic{
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14};

/// A zip archive with a pickle and a member for each storage (since PyTorch 1.6); `name` is that of a tensor
/// that is the whole file. No function of the pickle is called, see PickleMachine. Throws InvalidArgument.
[[nodiscard]] std::unique_ptr<TensorFile> open_torch_zip(InputFile file, std::string_view name);
/// Pickles one after the other, and the storages behind them.
[[nodiscard]] std::unique_ptr<TensorFile> open_torch_legacy(InputFile file, std::string_view name);

}  // namespace halfscope
