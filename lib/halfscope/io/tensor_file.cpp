// Which reader opens which file.
#include <halfscope/io/tensor_file.hpp>

#include <fmt/format.h>

#include <halfscope/io/flat_tensor_file.hpp>
#include <halfscope/io/npz_file.hpp>
#include <halfscope/io/refusal.hpp>

namespace halfscope {

std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path,
                                             std::optional<StoredType> raw_type) {
  InputFile file(path);
  const std::string extension = path.extension().string();
  const std::string name = path.stem().string();
  if (extension == ".safetensors") return open_safetensors(std::move(file));
  if (extension == ".npz") return open_npz(std::move(file), raw_type);
  if (extension == ".npy") return open_npy(std::move(file), name, raw_type);
  if (raw_type) return open_raw(std::move(file), name, *raw_type);
  reject(file.name(), "not .npy, .npz or .safetensors; --dtype says what the elements of a raw file are");
}

}  // namespace halfscope
