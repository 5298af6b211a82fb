// Earlier names of settings, their values, experiments and options: read for one release, with a note.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

enum class NameKind : std::uint8_t { setting, tracker, accumulate, experiment, size };

struct RenamedEntry {
  NameKind kind;
  std::string_view earlier;
  std::string_view current;
};

/// Read until 0.2.
inline constexpr std::array renamed_table{
    RenamedEntry{NameKind::setting, "canvas", "image_size"},
    RenamedEntry{NameKind::setting, "shadow_every", "fp32_reference_every"},
    RenamedEntry{NameKind::tracker, "update_loss", "lost_updates"},
    RenamedEntry{NameKind::tracker, "gradient_underflow", "cast_statistics"},
    RenamedEntry{NameKind::accumulate, "fp32_fast", "cublas"},
    RenamedEntry{NameKind::experiment, "dose", "averaging-sweep"},
    RenamedEntry{NameKind::experiment, "no-harm", "negative-controls"},
    RenamedEntry{NameKind::experiment, "reductions", "accumulation-error"},
    RenamedEntry{NameKind::size, "cpu", "small"},
    RenamedEntry{NameKind::size, "gpu", "full"},
};

/// The current name of what was called `name`, or `name` itself. Notes an earlier name on stderr, each once.
[[nodiscard]] std::string_view current_name(NameKind kind, std::string_view name);

/// A note on stderr that `earlier` is called `current` now; each once.
void note_renamed(std::string_view earlier, std::string_view current);

/// The value of the setting `key` with current names: of trackers, separated by commas, and accumulation
/// models.
[[nodiscard]] std::string current_value(std::string_view key, std::string_view value);

/// A run's config.json with current names of its settings and their values.
[[nodiscard]] Json with_current_names(const Json& config);

}  // namespace halfscope
