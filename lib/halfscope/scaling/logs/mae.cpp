// Lines of MAE and its relatives: the state after a step of an epoch.
#include <cmath>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// "Epoch: [3]  [ 20/625]  eta: 0:10:01  loss: 6.91 (6.95)  loss_scale: 65536.0000 (65536.0000)".
void find_step(std::string_view text, const SkipLogSink& sink) {
  const auto scale = number_after<double>(text, "loss_scale: ");
  const auto epoch = number_after<std::int64_t>(text, "Epoch: [");
  if (!is_scale(scale) || !is_count(epoch)) return;
  text.remove_prefix(text.find("Epoch: [") + 8);
  const std::size_t bracket = text.find('[');
  if (bracket == std::string_view::npos) return;
  text.remove_prefix(bracket + 1);
  const auto at = take_log_number<std::int64_t>(text);
  if (!is_count(at) || !take_word(text, "/")) return;
  const auto steps = take_log_number<std::int64_t>(text);
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (!is_count(steps) || *at >= *steps || *steps > most || *epoch > most) return;
  IterationLine line{.iteration = *epoch * *steps + *at + 1, .scale = scale, .format = "mae"};
  const auto norm = number_after<double>(text, "grad_norm: ");
  if (norm && !std::isfinite(*norm)) line.grad_norm = norm_of(norm);  // a median over steps is no bound
  line.has_finite_norm = norm && std::isfinite(*norm);
  line.loss = loss_of(number_after<double>(text, " loss: "));
  sink.iteration(line);
}

}  // namespace

LogLineReader read_mae(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    find_step(line.text, sink);
    return false;
  };
}

}  // namespace halfscope
