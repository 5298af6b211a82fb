// Lines of fairseq, Apex, MAE and its relatives, and those of runs that end at the smallest scale.
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// Both lower the scale by half, and print the lower one.
void find_halvings(std::string_view text, std::string_view label, SkipLogFormat format,
                   const SkipLogSink& sink) {
  const auto next = number_after<double>(text, label);
  if (!next || !is_scale(2 * *next) || !is_scale(next)) return;
  // fairseq's first process alone prints.
  sink.overflow(
      {.scale = 2 * *next, .next = next, .has_rank = format == SkipLogFormat::fairseq, .format = format});
}

/// "train_inner | epoch 002:     10 / 900 loss=7.31, num_updates=40, gnorm=88.4, loss_scale=64". The scale is
/// rounded to a whole number, and the norm is a mean over steps: neither is more than a hint below 1.
void find_fairseq(std::string_view text, const SkipLogSink& sink) {
  const auto updates = number_after<std::int64_t>(text, "num_updates=");
  if (!is_count(updates)) return;
  IterationLine line{.iteration = *updates, .format = SkipLogFormat::fairseq};
  line.scale = number_after<double>(text, "loss_scale=");
  const bool has_scale = line.scale.has_value();
  if (!line.scale || *line.scale < 1 || !is_scale(line.scale)) line.scale.reset();
  const auto norm = number_after<double>(text, "gnorm=");
  if (norm && !std::isfinite(*norm)) line.grad_norm = norm_of(norm);
  if (has_scale || line.grad_norm) sink.iteration(line);
}

/// "Epoch: [3]  [ 20/625]  eta: 0:10:01  loss: 6.91 (6.95)  loss_scale: 65536.0000 (65536.0000)".
void find_mae(std::string_view text, const SkipLogSink& sink) {
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
  IterationLine line{.iteration = *epoch * *steps + *at + 1, .scale = scale, .format = SkipLogFormat::mae};
  const auto norm = number_after<double>(text, "grad_norm: ");
  if (norm && !std::isfinite(*norm)) line.grad_norm = norm_of(norm);  // a median over steps is no bound
  sink.iteration(line);
}

}  // namespace

void find_other_overflows(std::string_view text, const SkipLogSink& sink) {
  if (text.find("overflow detected") != std::string_view::npos)
    find_halvings(text, "setting loss scale to:", SkipLogFormat::fairseq, sink);
  if (text.find("Gradient overflow.") != std::string_view::npos)
    find_halvings(text, "loss scaler 0 reducing loss scale to", SkipLogFormat::apex, sink);
  find_fairseq(text, sink);
  find_mae(text, sink);
  for (const std::string_view ending :
       {"Current loss scale already at minimum", "Minimum loss scale reached"}) {
    if (text.find(ending) != std::string_view::npos) sink.end();
  }
}

}  // namespace halfscope
