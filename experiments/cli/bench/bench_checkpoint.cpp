// Writes the archive of torch.save byte by byte: a pickle of the state_dict, and a stored member per storage.
#include "experiments/cli/bench/bench_checkpoint.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>
#include <halfscope/io/tensor_file.hpp>

#include "experiments/cli/bench/bench_folder.hpp"

namespace halfscope {
namespace {

constexpr int tensor_count = 8;
constexpr std::int64_t tensor_elements = std::int64_t{1} << 21;

std::string number_bytes(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (; count > 0; --count, value >>= 8) bytes += static_cast<char>(value & 0xff);
  return bytes;
}

struct Member {
  std::string name, data;
};

/// A zip archive of members that are not packed.
std::string archive_of(const std::vector<Member>& members) {
  std::string bytes, directory;
  for (const auto& [name, data] : members) {
    const auto check =
        ::crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
    const std::string fields = number_bytes(20, 2) + number_bytes(0, 4) + number_bytes(0x21u << 16, 4) +
                               number_bytes(check, 4) + number_bytes(data.size(), 4) +
                               number_bytes(data.size(), 4) + number_bytes(name.size(), 2) +
                               number_bytes(0, 2);
    directory += "PK\1\2" + number_bytes(20, 2) + fields + std::string(10, '\0') +
                 number_bytes(bytes.size(), 4) + name;
    bytes += "PK\3\4" + fields + name + data;
  }
  const std::size_t begin = bytes.size();
  return bytes + directory + "PK\5\6" + number_bytes(0, 4) + number_bytes(members.size(), 2) +
         number_bytes(members.size(), 2) + number_bytes(directory.size(), 4) + number_bytes(begin, 4) +
         number_bytes(0, 2);
}

std::string pickled_text(std::string_view text) {
  return "X" + number_bytes(text.size(), 4) + std::string(text);
}

std::string pickled_number(std::int64_t value) {
  return "J" + number_bytes(static_cast<std::uint64_t>(value), 4);
}

/// _rebuild_tensor_v2 of the storage called `key`, as a vector.
std::string pickled_tensor(const std::string& key) {
  const std::string storage = "(" + pickled_text("storage") + "ctorch\nFloatStorage\n" + pickled_text(key) +
                              pickled_text("cpu") + pickled_number(tensor_elements) + "tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + pickled_number(0) + "(" +
         pickled_number(tensor_elements) + "t(" + pickled_number(1) + "t\x89Nt" + "R";
}

void write_checkpoint(const std::filesystem::path& path, const SafetensorsFile& state) {
  std::string pickle = "\x80\x02}(";
  std::vector<Member> members{{"archive/data.pkl", ""}};
  for (const auto& [name, array] : state.tensors) {
    const std::string key = std::to_string(members.size() - 1);
    pickle += pickled_text(name) + pickled_tensor(key);
    std::string data(array.size() * sizeof(float), '\0');
    std::memcpy(data.data(), array.values().data(), data.size());
    members.push_back({"archive/data/" + key, std::move(data)});
  }
  members[0].data = pickle + "u.";
  write_file(path, archive_of(members));
}

SafetensorsFile made_state() {
  SafetensorsFile state;
  for (int i = 0; i < tensor_count; ++i) {
    Array array(Shape{tensor_elements});
    const RandomStream stream{.seed = static_cast<std::uint64_t>(i)};
    for (std::size_t j = 0; j < array.size(); ++j) array.values()[j] = stream.uniform(j);
    state.tensors.push_back({fmt::format("layers.{}.weight", i), std::move(array)});
  }
  return state;
}

void read_all(const std::filesystem::path& path) {
  const auto file = open_tensor_file(path);
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < file->tensors().size(); ++i)
    file->read(i, 0, file->tensors()[i].elements,
               [&](std::span<const float> piece) { elements += std::ssize(piece); });
  if (elements != tensor_count * tensor_elements)
    throw RuntimeFailure(fmt::format("{} elements were read", elements));
}

}  // namespace

BenchResult bench_checkpoint() {
  const BenchFolder folder;
  const auto checkpoint = folder / "model.pt", plain = folder / "model.safetensors";
  {
    const SafetensorsFile state = made_state();
    write_checkpoint(checkpoint, state);
    write_safetensors(plain, state);
  }
  const Times times = time_in_turn([&] { read_all(checkpoint); }, [&] { read_all(plain); });
  const double bytes = double{tensor_count} * tensor_elements * sizeof(float);
  return {bytes / times.ours * 1e-9, "GB/s", times.ratio, "safetensors"};
}

}  // namespace halfscope
