// Generated logs whose skips stand in words beside the scale: each is counted once, whichever tells of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::skip_log_mentions_test {
namespace {

enum class Place : std::uint8_t { before, inside, behind };

constexpr std::array<std::string_view, 5> sentences{
    "Found inf in gradients, skipping this step", "overflow detected: optimizer step skipped",
    "WARNING gradients are not finite, update skipped", "AMP overflow, scale lowered, skip step",
    "skipped backward: overflow"};

struct Layout {
  Place place = Place::inside;
  bool is_behind = false;  ///< the scale is that behind the step
  bool has_words = true;
  std::int64_t every = 1;  ///< steps to a line of state
  std::string_view words = sentences[0];
};

struct Run {
  std::vector<double> scales;  ///< one more than steps
  std::vector<bool> skipped;

  [[nodiscard]] std::int64_t skips() const { return std::ranges::count(skipped, true); }
};

/// A scaler that halves at each skip and, where it grows, doubles behind some good steps.
Run random_run(std::mt19937& draw, bool is_constant) {
  Run run{.scales = {std::ldexp(1.0, 40)}, .skipped = {}};
  const auto size = static_cast<std::size_t>(5 + draw() % 60);
  const auto odds = 2 + draw() % 20, window = 3 + draw() % 40;
  std::uint_fast32_t good = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool skips = draw() % odds == 0 && run.skips() < 30;
    good = skips ? 0 : good + 1;
    const double factor = is_constant ? 1 : skips ? 0.5 : good % window == 0 ? 2 : 1;
    run.scales.push_back(run.scales.back() * factor);
    run.skipped.push_back(skips);
  }
  return run;
}

std::vector<std::string> printed(const Run& run, const Layout& layout) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < run.skipped.size(); ++i) {
    const bool tells = layout.has_words && run.skipped[i];
    const bool has_state = static_cast<std::int64_t>(i + 1) % layout.every == 0;
    const bool is_inside = layout.place == Place::inside && has_state;
    if (tells && layout.place != Place::behind && !is_inside) lines.emplace_back(layout.words);
    if (has_state)
      lines.push_back(fmt::format("step={} loss=1.5 loss_scale={}{}", i + 1,
                                  run.scales[layout.is_behind ? i + 1 : i],
                                  tells && is_inside ? fmt::format(" {}", layout.words) : ""));
    if (tells && layout.place == Place::behind) lines.emplace_back(layout.words);
  }
  return lines;
}

SkipLog read(const std::vector<std::string>& lines) {
  SkipLogReader reader;
  for (const std::string& line : lines) reader.line(line);
  return reader.finish();
}

Layout random_layout(std::mt19937& draw) {
  return {.place = static_cast<Place>(draw() % 3),
          .is_behind = draw() % 2 == 0,
          .words = sentences[draw() % sentences.size()]};
}

/// Whether the log of the same run without words tells of all its skips but that of the last step.
std::int64_t told_by_scale(const Run& run, const Layout& layout) {
  return run.skips() - (!layout.is_behind && run.skipped.back() ? 1 : 0);
}

TEST_CASE("a skip that words and the scale tell of is counted once", "[skip_log]") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 draw(seed);
    const Run run = random_run(draw, false);
    const Layout layout = random_layout(draw);
    const std::vector<std::string> lines = printed(run, layout);
    CAPTURE(seed, layout.words, layout.is_behind, static_cast<int>(layout.place), lines);
    const SkipLog log = read(lines);
    REQUIRE(log.least_skipped() <= run.skips());
    REQUIRE(log.most_skipped() >= run.skips());
    REQUIRE(*log.most_skipped() <=
            run.skips() + 1);  // that of the first step, of which no line before it tells
    const bool hides_first = layout.is_behind && run.skipped.front();
    const std::int64_t untold = run.skips() - told_by_scale(run, layout);
    REQUIRE(log.told_in_words <= untold + (hides_first ? 1 : 0));
  }
}

TEST_CASE("skips of which words alone tell stay among those at most", "[skip_log]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 draw(seed);
    const Run run = random_run(draw, true);
    const Layout layout = random_layout(draw);
    const std::vector<std::string> lines = printed(run, layout);
    CAPTURE(seed, layout.words, lines);
    const SkipLog log = read(lines);
    REQUIRE(log.least_skipped() == 0);
    REQUIRE(log.most_skipped() >= run.skips());
    REQUIRE(log.told_in_words >= run.skips() - 1);
    REQUIRE(log.told_in_words <= run.skips());
  }
}

TEST_CASE("lines for several steps enclose the skips that words tell of", "[skip_log]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 draw(seed);
    const Run run = random_run(draw, draw() % 3 == 0);
    Layout layout = random_layout(draw);
    layout.every = 2 + static_cast<std::int64_t>(draw() % 4);
    if (std::ssize(run.skipped) < 2 * layout.every) continue;
    const std::vector<std::string> lines = printed(run, layout);
    CAPTURE(seed, layout.words, layout.every, lines);
    const SkipLog log = read(lines);
    const auto up_to = static_cast<std::ptrdiff_t>(log.steps.back().step);
    REQUIRE(log.most_skipped() >= std::count(run.skipped.begin(), run.skipped.begin() + up_to, true));
    REQUIRE(log.least_skipped() <= run.skips());
  }
}

TEST_CASE("words that a scale explains are not told as unread", "[skip_log]") {
  for (const Place place : {Place::before, Place::inside, Place::behind}) {
    for (const bool is_behind : {false, true}) {
      const Run run{.scales = {8, 8, 4, 4, 2, 2}, .skipped = {false, true, false, true, false}};
      const SkipLog log = read(printed(run, {.place = place, .is_behind = is_behind}));
      CHECK(log.told_in_words == 0);
      CHECK(std::ranges::none_of(log.notes,
                                 [](const std::string& note) { return note.find("in words") != note.npos; }));
    }
  }
}

}  // namespace
}  // namespace halfscope::skip_log_mentions_test
