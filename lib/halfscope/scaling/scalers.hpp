// The loss scalers that have a name: one line per scaler.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <halfscope/scaling/dynamic_scaler.hpp>
#include <halfscope/scaling/loss_scaler.hpp>

namespace halfscope {

/// What any scaler may be told; each takes what it knows.
struct ScalerOptions {
  double static_scale = 1;
  DynamicScalerOptions dynamic;
};

struct ScalerEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<LossScaler> (*make)(const ScalerOptions& options);
};

[[nodiscard]] std::unique_ptr<LossScaler> make_unscaled(const ScalerOptions& options);
[[nodiscard]] std::unique_ptr<LossScaler> make_static(const ScalerOptions& options);
[[nodiscard]] std::unique_ptr<LossScaler> make_dynamic(const ScalerOptions& options);

inline constexpr std::array scaler_table{
    ScalerEntry{"none", "no scaling", make_unscaled},
    ScalerEntry{"static", "a constant: give the number itself, such as 1024; never skips a step",
                make_static},
    ScalerEntry{"dynamic", "halve and skip on overflow, double after growth_interval good steps",
                make_dynamic},
};

}  // namespace halfscope
