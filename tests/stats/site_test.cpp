// Random streams of casts: one for each tensor, role, part and micro-batch.
#include <halfscope/stats/site.hpp>

#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::site_test {
namespace {

/// 32-bit FNV-1a, by its definition.
std::uint32_t fnv1a(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0x811c9dc5;
  for (const std::uint8_t byte : bytes) hash = ((hash ^ byte) * 0x01000193) % (std::uint64_t{1} << 32);
  return static_cast<std::uint32_t>(hash);
}

std::vector<std::uint8_t> bytes_of(const std::string& name) {
  return {name.begin(), name.end()};
}

std::vector<std::uint8_t> with_number(std::vector<std::uint8_t> bytes, std::int64_t number) {
  for (int i = 0; i < 4; ++i, number /= 256) bytes.push_back(static_cast<std::uint8_t>(number % 256));
  return bytes;
}

TEST_CASE("a cast's random stream is FNV-1a over the name and the number of its part", "[site]") {
  for (const std::string name : {"", "fc1", "encoder1.self.norm.gamma"}) {
    CHECK(stream_site({.tensor = name}) == fnv1a(bytes_of(name)) + 1);  // an activation's role is 1
    for (const std::int32_t part : {0, 1, 127, 16383})
      CHECK(stream_site({.tensor = name, .role = Role::weight, .part = part}) ==
            fnv1a(with_number(bytes_of(name), part)));
    for (const std::int32_t micro_batch : {0, 1, 15, 131070}) {
      const Site site{.tensor = name, .role = Role::weight_gradient, .micro_batch = micro_batch};
      CHECK(stream_site(site) == fnv1a(with_number(bytes_of(name), std::int64_t{micro_batch} * 16384)) + 3);
      for (const std::int32_t part : {0, 1, 16383}) {
        Site own = site;
        own.part = part;
        const std::int64_t number = std::int64_t{micro_batch} * 16384 + part;
        CHECK(stream_site(own) == fnv1a(with_number(bytes_of(name), number)) + 3);
      }
    }
  }
}

TEST_CASE("a tensor is seen in parts by time steps and by micro-batches", "[site]") {
  CHECK_FALSE(Site{.tensor = "x"}.in_parts());
  CHECK(Site{.tensor = "x", .part = 0}.in_parts());
  CHECK(Site{.tensor = "x", .micro_batch = 0}.in_parts());
  std::set<std::uint32_t> streams{stream_site({.tensor = "x"})};
  for (const std::int32_t micro_batch : {0, 1, 2}) {
    for (const std::int32_t part : {0, 1, 2})
      streams.insert(stream_site({.tensor = "x", .part = part, .micro_batch = micro_batch}));
  }
  CHECK(streams.size() == 10);
}

}  // namespace
}  // namespace halfscope::site_test
