// The files of lib/halfscope/explorer/assets, as text.
#pragma once

#include <string_view>

namespace halfscope::assets {

extern const std::string_view script, style, page, legend, formats_legend;

}  // namespace halfscope::assets
