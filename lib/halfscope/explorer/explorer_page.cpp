// Fills the explorer's page.
#include <halfscope/explorer/explorer_data.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <halfscope/core/name_list.hpp>
#include <halfscope/explorer/detail/assets.hpp>
#include <halfscope/explorer/detail/html.hpp>

namespace halfscope {

using detail::html;

namespace {

std::string scales_that_fit(const TensorFit& fit) {
  if (fit.any_scale) return "any";
  const auto window = fit.window();
  return window ? fmt::format("2^{} to 2^{}", window->low, window->high) : "none";
}

/// Counts of a cast of all steps of a tensor, unscaled.
WhatIf cast_unscaled(const ExploredTensor& tensor, const FloatFormat& format) {
  WhatIf sum;
  for (const auto& [step, totals] : tensor.steps) {
    sum.elements += totals.zeros + totals.nonfinite;
    for (const auto& [exponent, counts] : totals.binades) {
      const WhatIf found = what_if(BinadeRange{exponent, {&counts, 1}}, format, 0);
      sum.elements += found.elements;
      sum.flushed += found.flushed;
      sum.overflow += found.overflow;
    }
  }
  return sum;
}

/// Counts at scale 1, which the script puts the moving table in place of.
std::string still_table(const ExplorerData& data) {
  std::string rows;
  for (const ExploredTensor& tensor : data.tensors()) {
    const WhatIf cast = cast_unscaled(tensor, data.format());
    const auto fit = data.fits().find(tensor.name);
    rows += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        html(tensor.name), cast.elements, cast.flushed, cast.overflow,
                        fit == data.fits().end() ? "" : scales_that_fit(fit->second));
  }
  return "<table><thead><tr><th>tensor</th><th>elements</th><th>flushed at scale 1</th><th>overflow at "
         "scale 1</th><th>fits S</th></tr></thead><tbody>\n" +
         rows + "</tbody></table>";
}

/// At most three names, as HTML.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += fmt::format("{}<b>{}</b>", i == 0 ? "" : ", ", html(names[i]));
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

/// The tensors that overflow first beyond the window.
std::vector<std::string> first_to_overflow(const ExplorerData& data, const ScaleWindow& window) {
  std::vector<std::string> names;
  for (const ExploredTensor& tensor : data.tensors()) {
    const auto fit = data.fits().find(tensor.name);
    if (fit != data.fits().end() && !fit->second.any_scale && fit->second.overflow_high == window.high)
      names.push_back(tensor.name);
  }
  return names;
}

}  // namespace

std::string_view explorer_script() {
  return assets::script;
}

std::string_view explorer_style() {
  return assets::style;
}

std::string_view explorer_legend() {
  return assets::legend;
}

std::string explorer_answer(const ExplorerData& data) {
  const Advice& advice = data.advice();
  if (advice.verdict.empty()) return "";
  std::string text = "<div class=\"advice\">";
  if (advice.joint && advice.recommended) {
    text += fmt::format(
        "<p>Use <b>S = 2^{}</b>. Enough from 2^{}: below it underflow harms {} first. Overflow "
        "beyond 2^{}: {} first.</p>\n",
        *advice.recommended, advice.joint->low, listed(advice.first_hurt), advice.joint->high,
        listed(first_to_overflow(data, *advice.joint)));
  }
  for (const std::string_view line : split(advice.verdict, '\n'))
    text += fmt::format("<p>{}{}</p>\n", html(line), line.ends_with('.') ? "" : ".");
  return text + "</div>";
}

std::string explorer_page(std::string_view title, const ExplorerData& data) {
  return detail::explorer_document(title, {.legend = assets::legend,
                                           .answer = explorer_answer(data),
                                           .table = still_table(data),
                                           .data = explorer_json(data)});
}

}  // namespace halfscope
