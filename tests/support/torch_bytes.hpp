// Checkpoints of PyTorch's written byte by byte, so that a test may write wrong ones.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/zip_bytes.hpp"

namespace halfscope {

/// Opcodes of Python's pickles, as the tests need them.
namespace pickled {
inline std::string text(std::string_view value) {
  return "X" + little_endian(value.size(), 4) + std::string(value);
}
inline std::string integer(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::string_view items) {
  return "(" + std::string(items) + "t";
}
/// The persistent id of storage `key`, of `elements` floats unless `type` says otherwise.
inline std::string storage(std::string_view key, std::int64_t elements,
                           std::string_view type = "FloatStorage") {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + integer(elements)) + "Q";
}
/// A tensor; `size` and `strides` are items of tuples.
inline std::string tensor(const std::string& storage, std::int64_t offset, const std::string& size,
                          const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage + integer(offset) + tuple(size) + tuple(strides) + "\x89N") + "R";
}
/// A whole pickle that leaves `value`.
inline std::string whole(std::string_view value) {
  return "\x80\x02" + std::string(value) + ".";
}
/// {key: value, ...} of items that are given one after the other.
inline std::string dict(std::string_view items) {
  return "}(" + std::string(items) + "u";
}
}  // namespace pickled

/// The archive of a pickle and of one storage, "0".
[[nodiscard]] inline std::string torch_zip_bytes(std::string_view pickle, std::string_view storage) {
  return zip_bytes(
      {stored_part("archive/data.pkl", std::string(pickle)), stored_part("archive/byteorder", "little"),
       stored_part("archive/data/0", std::string(storage)), stored_part("archive/version", "3\n")});
}

/// The older format, with one storage of `elements` under "0".
[[nodiscard]] inline std::string torch_legacy_bytes(std::string_view pickle, std::string_view storage,
                                                    std::uint64_t elements) {
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  return magic + pickled::whole(pickled::integer(1001)) + pickled::whole("}") + std::string(pickle) +
         pickled::whole("](" + pickled::text("0") + "e") + little_endian(elements, 8) + std::string(storage);
}

}  // namespace halfscope
