// Text of `halfscope analyze`: rows, window and verdict.
#pragma once

#include <iosfwd>
#include <string>

#include "experiments/cli/analyze/analyze_view.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {

/// For the terminal: the table of the view, what is not in it, the window and the verdict.
[[nodiscard]] std::string analysis_text(const Analysis& analysis, const View& view, std::size_t width);
/// Window and verdict alone.
[[nodiscard]] std::string verdict_text(const Analysis& analysis, std::size_t width);
/// The table alone, for other programs.
[[nodiscard]] std::string analysis_table(const Analysis& analysis, const View& view, TableFormat format);

/// One document, as the contract of `analyze --json` has it; a tensor at a time, as there may be hundreds of
/// thousands.
void write_analysis_json(std::ostream& out, const Analysis& analysis, const View& view);
/// The same as JSON lines: each tensor, and the advice on all of them.
void write_analysis_json_lines(std::ostream& out, const Analysis& analysis, const View& view);

/// Writes the explorer of the tensors to the request's page. Throws RuntimeFailure where that fails.
void write_page(const AnalyzeRequest& request, const Analysis& analysis);

}  // namespace halfscope
