// The bytes of a deflated member of a zip archive, unpacked from its start in pieces.
#pragma once

#include <memory>

#include <halfscope/io/npz/detail/zip_directory.hpp>

namespace halfscope {

/// Needs memory for a window and a buffer, whatever the sizes; unpacks no more than the declared size. Throws
/// InvalidArgument with the byte of the file where the packed bytes are damaged, and at the member's end
/// where the size or the checksum is not the declared one. `file` must outlive the stream.
class InflateStream {
 public:
  InflateStream(const InputFile& file, const ZipMember& member);
  InflateStream(InflateStream&&) noexcept;
  InflateStream& operator=(InflateStream&&) noexcept;
  ~InflateStream();

  /// Bytes unpacked so far.
  [[nodiscard]] std::uint64_t position() const;
  /// Fills `to` with the next bytes, all of which must be within the member.
  void read(std::span<std::byte> to);
  /// Unpacks and drops the bytes up to `position`, which must not lie behind.
  void skip_to(std::uint64_t position);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfscope
