// JSON lines, as W&B's history and fairseq have them.
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>

namespace halfscope {
namespace {

std::optional<IterationLine> object_of(std::string_view text) {
  const std::size_t begin = text.find("{\"");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  for (const std::string_view name : step_names) {
    const auto step = member<std::int64_t>(text, name);
    if (!is_count(step)) continue;
    const bool fairseq = name == "num_updates";
    IterationLine line{.iteration = *step, .format = fairseq ? "fairseq" : "json"};
    line.scale = scale_member(text);
    line.grad_norm = norm_member(text);
    if (!member<double>(text, "loss_scale") && !line.grad_norm) return std::nullopt;
    if (fairseq && line.scale && *line.scale < 1) line.scale.reset();  // rounded
    return line;
  }
  return std::nullopt;
}

}  // namespace

LogLineReader read_json() {
  // The history of trainer_state.json is another reader's.
  return [in_history = false](const LogText& line, const SkipLogSink& sink) mutable {
    in_history = in_history || line.text.find(history_key) != std::string_view::npos;
    if (in_history) return;
    if (const auto found = object_of(line.text)) sink.iteration(*found);
  };
}

}  // namespace halfscope
