// Options of loss scalers: names, ranges and values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace halfscope {

/// Value by option: the chosen ones, or all that a scaler has.
using ScalerSettings = std::map<std::string, double, std::less<>>;

/// An option of one scaler, with that scaler's own default.
struct ScalerOption {
  std::string_view name;
  double value = 0;
};

/// The options of one scaler, eight at most: one more does not compile.
class ScalerDefaults {
 public:
  constexpr ScalerDefaults() = default;
  constexpr ScalerDefaults(std::initializer_list<ScalerOption> options) {
    for (const ScalerOption& option : options) options_.at(size_++) = option;
  }
  [[nodiscard]] constexpr const ScalerOption* begin() const { return options_.data(); }
  [[nodiscard]] constexpr const ScalerOption* end() const { return options_.data() + size_; }

 private:
  std::array<ScalerOption, 8> options_{};
  std::size_t size_ = 0;
};

enum class OptionKind : std::uint8_t { number, whole_number };

/// An option as the command line takes it; the range has both ends.
struct ScalerOptionEntry {
  std::string_view name;
  OptionKind kind = OptionKind::number;
  double low = 0;
  double high = 0;
  std::string_view summary;
};

inline constexpr double smallest_scale = 0x1p-149, largest_scale = 0x1.fffffep127;  // FP32's

inline constexpr std::array scaler_option_table{
    ScalerOptionEntry{"initial_scale", OptionKind::number, smallest_scale, largest_scale,
                      "the loss scale of the first step"},
    ScalerOptionEntry{"growth_factor", OptionKind::number, 1, 1e6, "factor by which the scale grows"},
    ScalerOptionEntry{"backoff_factor", OptionKind::number, 1e-6, 1, "factor of the scale after an overflow"},
    ScalerOptionEntry{"growth_interval", OptionKind::whole_number, 1, 1e9,
                      "steps without overflow before the scale grows"},
    ScalerOptionEntry{"min_scale", OptionKind::number, 0, largest_scale, "the scale's floor; 0: none"},
    ScalerOptionEntry{"max_scale", OptionKind::number, smallest_scale, largest_scale, "the scale's ceiling"},
    ScalerOptionEntry{"hysteresis", OptionKind::whole_number, 1, 1e9,
                      "overflows before the scale is lowered"},
    ScalerOptionEntry{"consecutive_hysteresis", OptionKind::whole_number, 0, 1,
                      "1: every good step refills the hysteresis; 0: growth does"},
    ScalerOptionEntry{"tolerance", OptionKind::number, 0, 1,
                      "overflow that is tolerated: of fairseq a share of the steps since the scale moved, of "
                      "popart a share of the elements in the upper eighth of the range"},
    ScalerOptionEntry{"underflow_share", OptionKind::number, 1e-9, 0.5,
                      "share of a layer's activation gradients that layerwise may lose"},
    ScalerOptionEntry{"layer_bound", OptionKind::number, 1, 0x1p24,
                      "the most that layerwise scales a layer by"},
    ScalerOptionEntry{"carried_bound", OptionKind::number, 1, 0x1p60,
                      "the most that layerwise lets a gradient carry of all layers' scales"},
    ScalerOptionEntry{"margin", OptionKind::whole_number, 0, 40,
                      "binades that headroom keeps free above the largest gradient"},
    ScalerOptionEntry{"history", OptionKind::whole_number, 1, 1000,
                      "steps that headroom remembers the largest gradient of"},
    ScalerOptionEntry{"patience", OptionKind::whole_number, 1, 1e9,
                      "steps in a row that overflow at headroom's floor before it ends the run"},
};

/// The value of the option called `name`, written as text. Throws InvalidArgument, with the range, where it
/// is none.
[[nodiscard]] double parse_scaler_option(const ScalerOptionEntry& option, std::string_view text);

/// Throws InvalidArgument for a setting that is no scaler's option, or out of the option's range.
void check_scaler_options(const ScalerSettings& settings);

/// The option's value, `otherwise` where it is not among the settings.
[[nodiscard]] double option_or(const ScalerSettings& settings, std::string_view name, double otherwise);

}  // namespace halfscope
