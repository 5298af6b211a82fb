// Stored members are read in place; deflated ones through streams that are kept for whoever reads on.
#include <halfscope/io/npz/detail/npz_file.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/npy/detail/npy_array.hpp>
#include <halfscope/io/npz/detail/inflate_stream.hpp>
#include <halfscope/io/npz/detail/stored_checksum.hpp>

namespace halfscope {
namespace {

constexpr std::string_view array_extension = ".npy";

/// Streams that somebody read from up to a place, for the reader who goes on from there.
class ParkedStreams {
 public:
  /// The stream of member `index` that is nearest before `position`, if there is one.
  [[nodiscard]] std::optional<InflateStream> take(std::size_t index, std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    auto best = parked_.end();
    for (auto entry = parked_.begin(); entry != parked_.end(); ++entry) {
      if (entry->first != index || entry->second.position() > position) continue;
      if (best == parked_.end() || entry->second.position() > best->second.position()) best = entry;
    }
    if (best == parked_.end()) return {};
    InflateStream stream = std::move(best->second);
    parked_.erase(best);
    return stream;
  }

  void park(std::size_t index, InflateStream stream) {
    const std::lock_guard lock(mutex_);
    if (parked_.size() == most) parked_.erase(parked_.begin());
    parked_.emplace_back(index, std::move(stream));
  }

 private:
  static constexpr std::size_t most = 64;  // 80 KiB each; one for each thread is enough
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, InflateStream>> parked_;  // oldest first
};

/// "w" of "w.npy", the whole name of any other member.
std::string_view name_of_array(std::string_view member) {
  if (member.ends_with(array_extension)) member.remove_suffix(array_extension.size());
  return member;
}

class NpzFile : public TensorFile {
 public:
  NpzFile(InputFile file, const StatedType& void_type, const NameFilter& wanted) : file_(std::move(file)) {
    for (ZipMember& member : read_zip_directory(file_)) {
      const std::string_view name = name_of_array(member.name);
      if (!wanted || wanted(name)) add(std::move(member), void_type);
    }
  }

  [[nodiscard]] const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  [[nodiscard]] const std::vector<SkippedTensor>& skipped() const override { return skipped_; }

  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    check_range(tensors_.at(index), first, count);
    const ArrayPlace& place = arrays_[index];
    const ZipMember& member = place.member;
    const ElementEncoding& encoding = place.encoding;
    if (count == 0) return;
    const std::uint64_t at =
        place.begin + static_cast<std::uint64_t>(first) * bytes_per_element(encoding.type);
    if (member.packing == Packing::stored) {
      return read_checked(place, {at, count}, sink);
    }
    std::optional<InflateStream> stream = parked_.take(index, at);
    if (!stream) stream.emplace(file_, member);
    stream->skip_to(at);
    read_elements(
        encoding, count, [&](std::span<std::byte> to) { stream->read(to); }, sink);
    if (stream->position() < member.size) parked_.park(index, std::move(*stream));
  }

 private:
  struct ArrayPlace {
    ZipMember member;
    std::uint64_t begin = 0;  // place of the elements in the member
    ElementEncoding encoding;
    std::unique_ptr<StoredChecksum> checksum;  ///< checksum of a stored member
  };
  struct Range {
    std::uint64_t at = 0;  ///< byte of the member
    std::int64_t count = 0;
  };

  /// A stored member's elements, while its checksum is kept.
  void read_checked(const ArrayPlace& place, const Range& range, const StoredSink& sink) const {
    RangeChecksum checksum(range.at);
    const ByteSource bytes = bytes_from(file_, place.member.begin + range.at);
    read_elements(
        place.encoding, range.count,
        [&](std::span<std::byte> to) {
          bytes(to);
          checksum.add(to);
        },
        sink);
    place.checksum->add(checksum, place_of(place.member, file_));
  }

  [[nodiscard]] NpyArray read_header(const ZipMember& member, const StatedType& void_type) const {
    const std::string where = place_of(member, file_);
    if (member.packing == Packing::stored) {
      return read_npy_array(bytes_from(file_, member.begin), member.size, where, void_type);
    }
    InflateStream stream(file_, member);
    return read_npy_array([&](std::span<std::byte> to) { stream.read(to); }, member.size, where, void_type);
  }

  /// Checksum of a member whose header, `header` bytes, has been read.
  [[nodiscard]] std::unique_ptr<StoredChecksum> checksum_of(const ZipMember& member,
                                                            std::uint64_t header) const {
    std::vector<std::byte> bytes(header);
    file_.read(member.begin, bytes);
    RangeChecksum range(0);
    range.add(bytes);
    auto checksum = std::make_unique<StoredChecksum>(member.size, member.crc);
    checksum->add(range, place_of(member, file_));
    return checksum;
  }

  void add(ZipMember member, const StatedType& void_type) {
    if (!member.name.ends_with(array_extension))
      return skipped_.push_back({member.name, "not an .npy array"});
    const std::string name(name_of_array(member.name));
    const NpyArray array = read_header(member, void_type);
    if (!array.encoding)
      return skipped_.push_back({name, why_not_read(array.header.descr, void_type.option)});
    const Access access = member.packing == Packing::stored ? Access::random : Access::sequential;
    tensors_.push_back({name, array.encoding->type, array.header.shape, array.elements, access, array.axes});
    std::unique_ptr<StoredChecksum> checksum;
    if (member.packing == Packing::stored) checksum = checksum_of(member, array.header.data_begin);
    arrays_.push_back({std::move(member), array.header.data_begin, *array.encoding, std::move(checksum)});
  }

  InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<ArrayPlace> arrays_;  // arrays of tensors_
  std::vector<SkippedTensor> skipped_;
  mutable ParkedStreams parked_;
};

}  // namespace

std::unique_ptr<TensorFile> open_npz(InputFile file, const StatedType& void_type, const NameFilter& wanted) {
  return std::make_unique<NpzFile>(std::move(file), void_type, wanted);
}

}  // namespace halfscope
