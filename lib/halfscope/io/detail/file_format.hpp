// The format of a file, by its first bytes and, where it has none that tell, by its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <halfscope/io/detail/input_file.hpp>

namespace halfscope {

/// Formats that are read.
enum class TensorFileFormat : std::uint8_t { npy, npz, safetensors, torch_zip, torch_legacy, gguf };

/// How much the bytes or the name say.
enum class Certainty : std::uint8_t {
  certain,   ///< nobody has raw elements that look like this
  probable,  ///< unless somebody says that the elements are raw
};

/// A format that is known and not read.
struct ForeignFormat {
  std::string description;  ///< its name, and how to convert it: one line
  Certainty certainty = Certainty::certain;
};

/// Nothing of both where the file may hold raw elements.
struct FileFormat {
  std::optional<TensorFileFormat> format{};
  std::optional<ForeignFormat> foreign{};
};

/// Throws InvalidArgument where a zip archive is damaged.
[[nodiscard]] FileFormat recognise(const InputFile& file, const std::filesystem::path& path);

}  // namespace halfscope
