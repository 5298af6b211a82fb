// Names that the user gives to the columns of a log.
#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

LogColumns parse_log_columns(std::string_view text) {
  LogColumns columns;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    std::string_view name = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    std::string* const place = key == "step"         ? &columns.step
                               : key == "loss_scale" ? &columns.scale
                               : key == "grad_norm"  ? &columns.norm
                               : key == "loss"       ? &columns.loss
                                                     : nullptr;
    constexpr std::string_view log2 = ":log2";
    if (place == &columns.scale && name.ends_with(log2)) {
      columns.scale_is_log2 = true;
      name.remove_suffix(log2.size());
    }
    if (place == nullptr || name.empty())
      throw InvalidArgument(
          fmt::format("columns '{}': give NAME=COLUMN with step, loss_scale, grad_norm or loss, as in "
                      "step=iter,loss_scale=lg_scale:log2",
                      escaped(item)));
    *place = name;
  }
  return columns;
}

}  // namespace halfscope
