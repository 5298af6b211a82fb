// A page with one loss-scale explorer: the answer, the moving figures, and a table for readers without
// scripts.
#pragma once

#include <string>
#include <string_view>

#include <halfscope/explorer/explorer_data.hpp>

namespace halfscope {

/// The ES module that draws an explorer, the style sheet that it needs, and its words, explained in HTML.
[[nodiscard]] std::string_view explorer_script();
[[nodiscard]] std::string_view explorer_style();
[[nodiscard]] std::string_view explorer_legend();

/// The advice in words, as HTML: the scale to use, enough from, overflow beyond, with the tensors that
/// decide. Empty without advice.
[[nodiscard]] std::string explorer_answer(const ExplorerData& data);

/// A self-contained HTML document of `data`: no other file, and no request. `title` is text, not HTML.
[[nodiscard]] std::string explorer_page(std::string_view title, const ExplorerData& data);

}  // namespace halfscope
