// A zip archive is read from its end: the end record says where the directory is, the directory where the
// members are.
#include <halfscope/io/npz/detail/zip_directory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view end_signature = "PK\5\6", locator_signature = "PK\6\7", end64_signature = "PK\6\6",
                           entry_signature = "PK\1\2", local_signature = "PK\3\4";
constexpr std::size_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, entry_bytes = 46,
                      local_bytes = 30;
constexpr std::uint64_t longest_comment = 0xFFFF;
constexpr std::uint64_t largest_directory = 1 << 25;  // 300,000 tensors with long names
constexpr std::uint64_t deflate_limit = 1032;         // bytes out of one, at the very most

/// Where the directory is.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t entries = 0;
};

/// The number of `width` bytes at `at`, lowest byte first; the caller has checked that it is there.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, width);
  return value;
}

std::string bytes_at(const InputFile& file, std::uint64_t begin, std::uint64_t count) {
  std::string bytes(count, '\0');
  file.read(begin, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Throws unless [begin, begin + size) ends by `limit`; `where` says in which file what lies there.
void check_within(std::uint64_t begin, std::uint64_t size, std::uint64_t limit, std::string_view where) {
  if (begin <= limit && size <= limit - begin) return;
  refuse(where, fmt::format("{} bytes from byte {} on reach past byte {}", size, begin, limit));
}

/// The byte at which the end record starts: the last place whose comment ends with the file.
std::uint64_t find_end_record(const InputFile& file) {
  const std::uint64_t tail_bytes = std::min(file.size(), end_bytes + longest_comment);
  const std::string tail = bytes_at(file, file.size() - tail_bytes, tail_bytes);
  std::size_t at =
      tail.size() < end_bytes ? std::string::npos : tail.rfind(end_signature, tail.size() - end_bytes);
  while (at != std::string::npos && at + end_bytes + number(tail, at + 20, 2) != tail.size()) {
    at = at == 0 ? std::string::npos : tail.rfind(end_signature, at - 1);
  }
  if (at == std::string::npos) {
    refuse(file.name(),
           fmt::format("byte {}: no end of a zip archive; the file is truncated or is no .npz", file.size()));
  }
  return file.size() - tail_bytes + at;
}

/// The record with 64-bit numbers, where a locator of it comes before the end record.
bool find_directory64(const InputFile& file, std::uint64_t end, Extent& directory) {
  if (end < locator_bytes) return false;
  const std::string locator = bytes_at(file, end - locator_bytes, locator_bytes);
  if (!locator.starts_with(locator_signature)) return false;
  const std::uint64_t begin = number(locator, 8, 8);
  check_within(begin, end64_bytes, end - locator_bytes, file.name() + ": the zip64 end record");
  const std::string record = bytes_at(file, begin, end64_bytes);
  if (!record.starts_with(end64_signature)) {
    refuse(file.name(), fmt::format("byte {}: not a zip64 end record", begin));
  }
  directory = {number(record, 48, 8), number(record, 40, 8), number(record, 32, 8)};
  check_within(directory.begin, directory.size, begin, file.name() + ": the zip directory");
  return true;
}

Extent find_directory(const InputFile& file) {
  const std::uint64_t end = find_end_record(file);
  Extent directory;
  if (!find_directory64(file, end, directory)) {
    const std::string record = bytes_at(file, end, end_bytes);
    if (number(record, 4, 2) != 0 || number(record, 6, 2) != 0) {
      refuse(file.name(), fmt::format("byte {}: one of several files of a split archive", end + 4));
    }
    directory = {number(record, 16, 4), number(record, 12, 4), number(record, 10, 2)};
    check_within(directory.begin, directory.size, end, file.name() + ": the zip directory");
  }
  if (directory.size > largest_directory) {
    refuse(file.name(), fmt::format("byte {}: a zip directory of {} bytes is over the limit of {}",
                                    directory.begin, directory.size, largest_directory));
  }
  return directory;
}

/// Replaces the 32-bit numbers that are all ones by those of the zip64 field among the `extra` ones.
void widen_numbers(std::string_view extra, const std::array<std::uint64_t*, 3>& numbers,
                   std::string_view where) {
  while (extra.size() >= 4) {
    const std::uint64_t id = number(extra, 0, 2);
    std::string_view field = extra.substr(4, number(extra, 2, 2));
    extra.remove_prefix(4 + field.size());
    if (id != 1) continue;
    for (std::uint64_t* wide : numbers) {
      if (*wide != 0xFFFF'FFFF) continue;
      if (field.size() < 8) refuse(where, "its zip64 field is too short");
      *wide = number(field, 0, 8);
      field.remove_prefix(8);
    }
    return;
  }
}

void check_packing(const ZipMember& member, std::uint64_t flags, std::string_view where) {
  if ((flags & 1) != 0) refuse(where, "encrypted; save it without a password");
  if (member.packing != Packing::stored && member.packing != Packing::deflated) {
    refuse(where, fmt::format("zip method {} cannot be read; stored (0) and deflated (8) can",
                              static_cast<unsigned>(member.packing)));
  }
  if (member.packing == Packing::stored && member.size != member.packed_size) {
    refuse(where, fmt::format("stored as {} bytes, declared as {}", member.packed_size, member.size));
  }
  if (member.size / deflate_limit > member.packed_size) {
    refuse(where, fmt::format("declares {} bytes, more than {} deflated ones can hold", member.size,
                              member.packed_size));
  }
}

/// Takes an entry off the front of `entries`; its `begin` is still that of the local header.
ZipMember take_entry(std::string_view& entries, const InputFile& file, std::uint64_t at) {
  const auto fail = [&] { refuse(file.name(), fmt::format("byte {}: not an entry of a zip directory", at)); };
  if (entries.size() < entry_bytes || !entries.starts_with(entry_signature)) fail();
  const std::uint64_t name_bytes = number(entries, 28, 2), extra_bytes = number(entries, 30, 2);
  const std::uint64_t total = entry_bytes + name_bytes + extra_bytes + number(entries, 32, 2);
  if (entries.size() < total) fail();
  ZipMember member;
  member.name = entries.substr(entry_bytes, name_bytes);
  member.packing = static_cast<Packing>(number(entries, 10, 2));
  member.crc = static_cast<std::uint32_t>(number(entries, 16, 4));
  member.packed_size = number(entries, 20, 4);
  member.size = number(entries, 24, 4);
  member.begin = number(entries, 42, 4);
  const std::string where = place_of(member, file);
  widen_numbers(entries.substr(entry_bytes + name_bytes, extra_bytes),
                {&member.size, &member.packed_size, &member.begin}, where);
  check_packing(member, number(entries, 8, 2), where);
  entries.remove_prefix(total);
  return member;
}

/// Moves `begin` of each member behind its local header. Throws unless the members follow one another up to
/// the directory.
void find_data(std::vector<ZipMember>& members, const InputFile& file, std::uint64_t directory) {
  std::vector<ZipMember*> ordered;
  ordered.reserve(members.size());
  for (ZipMember& member : members) ordered.push_back(&member);
  std::sort(ordered.begin(), ordered.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->begin < b->begin; });
  std::uint64_t free = 0;
  for (ZipMember* member : ordered) {
    const std::string where = place_of(*member, file);
    if (member->begin < free)
      refuse(where, fmt::format("byte {}: overlaps the member before it", member->begin));
    check_within(member->begin, local_bytes, directory, where);
    const std::string local = bytes_at(file, member->begin, local_bytes);
    if (!local.starts_with(local_signature)) {
      refuse(where, fmt::format("byte {}: no member of a zip archive starts there", member->begin));
    }
    member->begin += local_bytes + number(local, 26, 2) + number(local, 28, 2);
    check_within(member->begin, member->packed_size, directory, where);
    free = member->begin + member->packed_size;
  }
}

void check_names(const std::vector<ZipMember>& members, const InputFile& file) {
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end())
    refuse(file.name(), fmt::format("two members are named {}", excerpt(*repeated)));
}

}  // namespace

std::string place_of(const ZipMember& member, const InputFile& file) {
  return fmt::format("{}: member {}", file.name(), excerpt(member.name));
}

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  const Extent directory = find_directory(file);
  const std::string bytes = bytes_at(file, directory.begin, directory.size);
  std::vector<ZipMember> members;
  for (std::string_view rest = bytes; !rest.empty();) {
    members.push_back(take_entry(rest, file, directory.begin + (bytes.size() - rest.size())));
  }
  if (members.size() != directory.entries) {
    refuse(file.name(), fmt::format("the zip directory has {} entries, its end record says {}",
                                    members.size(), directory.entries));
  }
  find_data(members, file, directory.begin);
  check_names(members, file);
  return members;
}

}  // namespace halfscope
