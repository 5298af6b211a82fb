// zlib joins the checksums of neighbours without their bytes.
#include <halfscope/io/npz/detail/stored_checksum.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <iterator>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {

void RangeChecksum::add(std::span<const std::byte> bytes) {
  crc_ =
      static_cast<std::uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  size_ += bytes.size();
}

void StoredChecksum::add(const RangeChecksum& range, std::string_view where) {
  if (range.size() == 0 && size_ != 0) return;
  const std::lock_guard lock(mutex_);
  const auto [added, is_new] = parts_.try_emplace(range.begin(), Part{range.size(), range.crc()});
  if (!is_new) return;
  const auto join = [this](auto first, auto second) {
    if (first->first + first->second.size != second->first) return second;
    const auto length = static_cast<z_off_t>(second->second.size);
    first->second = {
        first->second.size + second->second.size,
        static_cast<std::uint32_t>(::crc32_combine(first->second.crc, second->second.crc, length))};
    parts_.erase(second);
    return first;
  };
  auto part = added;
  if (part != parts_.begin()) part = join(std::prev(part), part);
  if (const auto next = std::next(part); next != parts_.end()) join(part, next);
  if (part->second.size != size_ || part->second.crc == expected_) return;
  refuse(where,
         fmt::format("damaged: the checksum is {:08x}, it should be {:08x}", part->second.crc, expected_));
}

}  // namespace halfscope
