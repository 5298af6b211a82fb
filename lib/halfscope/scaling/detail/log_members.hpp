// Names of members that tell files of JSON apart.
#pragma once

#include <string_view>

namespace halfscope {

/// The member of trainer_state.json that holds its entries.
inline constexpr std::string_view history_key = "\"log_history\"";

}  // namespace halfscope
