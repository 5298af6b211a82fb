// The tensor-core models equal every capture that is committed; and a capture that is not what the model says
// is found.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/captures/capture.hpp"
#include "tests/captures/capture_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::captures_test {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the models equal every committed capture of a GPU", "[captures][repeats]") {
  std::set<std::string> captured;
  for (const auto& entry : fs::recursive_directory_iterator(HALFSCOPE_CAPTURES)) {
    if (entry.path().extension() != ".capture") continue;
    const Capture capture = parse_capture(read_text(entry.path()));
    const CaptureComparison comparison = compare_with_model(capture);
    captured.insert(capture.set);
    INFO(entry.path().filename().string() << ": " << comparison.different << " of " << comparison.outputs
                                          << " differ; first: " << comparison.first);
    CHECK((!comparison.binding || comparison.different == 0));
  }
  for (const CaptureSet& set : capture_sets) CHECK(captured.contains(std::string(set.name)));
  for (const CaptureFunction& function : capture_functions())
    CHECK(captured.contains(std::string(function.name)));
}

const CaptureOrigin made_up{"made up by the model", "9.0", "none", "none"};

const CaptureSet& set_named(std::string_view name) {
  return find_in_table("set", name, capture_sets);
}

/// Capture of a Hopper that equals its model.
Capture synthetic(std::string_view name) {
  return make_capture(name, made_up, modelled_results(set_named(name), {TensorCoreGeneration::hopper}));
}

TEST_CASE("a capture survives its text, and the model equals what it made", "[captures]") {
  for (const char* name : {"zeros_f16_f32", "probes_f16_f16", "tiny_wgmma_f16_f16", "specials_bf16_f32"}) {
    const Capture capture = synthetic(name);
    const Capture read = parse_capture(to_text(capture));
    CHECK(read.results == capture.results);
    CHECK(read.digests == capture.digests);
    CHECK(read.origin.device == made_up.device);
    const CaptureComparison comparison = compare_with_model(read);
    INFO(name << ": " << comparison.first);
    CHECK(comparison.different == 0);
    CHECK(comparison.outputs == static_cast<std::size_t>(outputs_of(set_named(name))));
    CHECK(comparison.binding);
  }
}

TEST_CASE("a corrupted capture is found", "[captures]") {
  Capture stored = synthetic("specials_f16_f16");
  stored.results[100] ^= 1u;
  CaptureComparison comparison = compare_with_model(parse_capture(to_text(stored)));
  CHECK(comparison.different == 1);
  check_says(comparison.first, {"output 100:"});
  // One bit of the 65,000 outputs that are not stored.
  const CaptureSet& set = set_named("specials_f16_f16");
  std::vector<std::uint32_t> results = modelled_results(set, {TensorCoreGeneration::hopper});
  results[50000] ^= 0x8000u;
  comparison = compare_with_model(make_capture(set.name, made_up, results));
  CHECK(comparison.different == outputs_per_digest);
  check_says(comparison.first, {"from 49152 on"});
}

TEST_CASE("a capture of another GPU generation is told from Hopper's", "[captures]") {
  Capture capture = synthetic("cancelling_f16_f32");
  CHECK(compare_with_model(capture).different == 0);
  capture.origin.capability = "8.0";
  CHECK(compare_with_model(capture).different > 0);
}

TEST_CASE("every set tells the bits kept, or where a zero counts, where it is meant to", "[captures]") {
  const auto different = [](std::string_view name, auto change) {
    const CaptureSet& set = set_named(name);
    const TensorCoreStep step = step_of_set(set, {TensorCoreGeneration::hopper});
    TensorCoreStep changed = step;
    change(changed);
    std::size_t count = 0;
    for (int tile = 0; tile < std::min(set.tiles, 64); ++tile)
      count += count_modelled(set, tile, step, changed);
    return count;
  };
  CHECK(different("cancelling_f16_f16", [](TensorCoreStep& s) { s.fraction_bits = 24; }) > 0);
  CHECK(different("cancelling_f16_f16", [](TensorCoreStep& s) { s.fraction_bits = 26; }) > 0);
  CHECK(different("cancelling_f16_f32", [](TensorCoreStep& s) { s.fraction_bits = 26; }) > 0);
  CHECK(different("mma16_f16_f32_wide", [](TensorCoreStep& s) { s.fraction_bits = 24; }) > 0);
  CHECK(different("probes_f16_f16", [](TensorCoreStep& s) { s.zero_exponent = -133; }) > 0);
  CHECK(different("probes_f16_f16", [](TensorCoreStep& s) { s.zero_exponent = -22; }) > 0);
  CHECK(different("chain512_f16_f32", [](TensorCoreStep& s) { s.products = 8; }) > 0);
  CHECK(different("chain512_tf32_f32", [](TensorCoreStep& s) { s.products = 4; }) > 0);
  CHECK(different("cancelling_tf32_f32", [](TensorCoreStep& s) { s.fraction_bits = 24; }) > 0);
  CHECK(different("cancelling_tf32_f32", [](TensorCoreStep& s) { s.fraction_bits = 26; }) > 0);
  for (const char* name : {"cancelling_wgmma_e4m3_f32", "cancelling_wgmma_e5m2_f16"}) {
    CHECK(different(name, [](TensorCoreStep& s) { s.fraction_bits = 12; }) > 0);
    CHECK(different(name, [](TensorCoreStep& s) { s.fraction_bits = 14; }) > 0);
    CHECK(different(name, [](TensorCoreStep& s) { s.products = 16; }) > 0);
  }
}

TEST_CASE("operands are what their names say", "[captures]") {
  const TileOperands zeros = operands_of(set_named("zeros_f16_f32"), 0);
  std::set<std::uint32_t> codes(zeros.a.begin(), zeros.a.end());
  CHECK(codes == std::set<std::uint32_t>{0x0000, 0x8000});
  // Sums of f16 products that come to tiny negative numbers, zero and below half of the smallest.
  const auto tiny = modelled_results(set_named("tiny_f16_f16"), {TensorCoreGeneration::hopper});
  for (const std::uint32_t code : {0x8001u, 0x0000u, 0x0001u})
    CHECK(std::count(tiny.begin(), tiny.end(), code) > 0);
  const auto specials = modelled_results(set_named("specials_f16_f32"), {TensorCoreGeneration::hopper});
  for (const std::uint32_t bits : {0x7FFFFFFFu, 0x7F800000u, 0xFF800000u})
    CHECK(std::count(specials.begin(), specials.end(), bits) > 0);
}

TEST_CASE("a function's capture holds what is not the rounded exact value", "[captures]") {
  const CaptureFunction& root = capture_functions()[0];
  std::vector<std::uint32_t> results = exact_results(root);
  CHECK(results[0x4400] == 0x4000);  // sqrt(4) = 2
  CHECK(results[0xBC00] == 0x7FFF);
  Capture capture = make_capture(root.name, made_up, results);
  CHECK(capture.results.empty());
  CHECK(compare_with_model(parse_capture(to_text(capture))).different == 0);
  results[0x4401] += 1;
  capture = make_capture(root.name, made_up, results);
  const CaptureComparison comparison = compare_with_model(parse_capture(to_text(capture)));
  CHECK(comparison.different == 1);
  CHECK(comparison.binding);
  check_says(comparison.first, {"hsqrt(4401)"});
  capture.results.clear();
  check_says(compare_with_model(capture).first, {"digest"});
}

TEST_CASE("what is no capture is refused", "[captures]") {
  const std::string good = to_text(synthetic("zeros_f16_f32"));
  const auto refusal = [](const std::string& text) {
    return message_of<InvalidArgument>([&] { (void)parse_capture(text); });
  };
  check_says(refusal(""), {"first line"});
  check_says(refusal(R"({"set": "nonesuch"})"), {"no set 'nonesuch'"});
  std::string other = good;
  other.replace(other.find("\"depth\":16"), 10, "\"depth\":32");
  check_says(refusal(other), {"depth should be 16"});
  check_says(refusal(good.substr(0, good.size() - 18)), {"digests"});
  other = good;
  other.replace(other.find("results\n") + 8, 1, "x");
  check_says(refusal(other), {"no word of 8 hex digits"});
}

}  // namespace
}  // namespace halfscope::captures_test
