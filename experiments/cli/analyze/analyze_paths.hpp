// The files that the words of a command line stand for.
#pragma once

#include <string>
#include <vector>

namespace halfscope {

/// A word is a file, a folder (all .npy, .npz and .safetensors files in it and below, by name; hidden ones
/// and links to folders are left out), a glob that the shell did not expand, or an index of safetensors
/// shards (model.safetensors.index.json). A file that several words stand for comes once, where it came
/// first. Throws InvalidArgument for a word that stands for no file.
[[nodiscard]] std::vector<std::string> expand_paths(const std::vector<std::string>& words);

}  // namespace halfscope
