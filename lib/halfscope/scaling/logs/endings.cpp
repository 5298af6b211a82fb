// Lines of runs that end since a scale cannot fall further, or since a loss or a norm is not finite.
#include <array>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

struct Ending {
  std::string_view sign;
  EndingLine::Kind kind;
  std::string_view step{};  ///< the label of a step, if it names one
};

constexpr std::array endings{
    Ending{"Current loss scale already at minimum", EndingLine::Kind::at_minimum},
    Ending{"Minimum loss scale reached", EndingLine::Kind::at_minimum},
    Ending{"grad_scale is too small, exiting", EndingLine::Kind::at_minimum},
    Ending{"found NaN in local grad norm", EndingLine::Kind::not_finite},
    Ending{"found NaN in local forward loss", EndingLine::Kind::not_finite},
    Ending{"Loss became infinite or NaN", EndingLine::Kind::not_finite, "iteration="},
    Ending{"Loss is nan, stopping training", EndingLine::Kind::not_finite},
    Ending{"Loss is inf, stopping training", EndingLine::Kind::not_finite},
    Ending{"Model diverged with loss = NaN", EndingLine::Kind::not_finite},
    Ending{"NaN loss during training", EndingLine::Kind::not_finite},
    Ending{"Function values are NaN", EndingLine::Kind::not_finite},
};

std::optional<std::int64_t> step_in(std::string_view text, std::string_view label) {
  const std::size_t at = label.empty() ? std::string_view::npos : text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  const auto step = take_log_number<std::int64_t>(text);
  return is_count(step) ? step : std::nullopt;
}

}  // namespace

LogLineReader read_endings(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    for (const Ending& ending : endings) {
      if (line.text.find(ending.sign) != std::string_view::npos)
        sink.end({ending.kind, step_in(line.text, ending.step)});
    }
    return false;
  };
}

}  // namespace halfscope
