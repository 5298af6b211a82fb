// fairseq's lines: lowered scales, and the state after an update.
#include <cmath>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// "train_inner | epoch 002:     10 / 900 loss=7.31, num_updates=40, gnorm=88.4, loss_scale=64". The scale is
/// rounded to a whole number, and the norm is a mean over steps: neither is more than a hint below 1.
void find_update(std::string_view text, const SkipLogSink& sink) {
  const auto updates = number_after<std::int64_t>(text, "num_updates=");
  if (!is_count(updates)) return;
  IterationLine line{.iteration = *updates, .format = "fairseq"};
  line.scale = number_after<double>(text, "loss_scale=");
  const bool has_scale = line.scale.has_value();
  if (!line.scale || *line.scale < 1 || !is_scale(line.scale)) line.scale.reset();
  const auto norm = number_after<double>(text, "gnorm=");
  if (norm && !std::isfinite(*norm)) line.grad_norm = norm_of(norm);
  if (has_scale || line.grad_norm) sink.iteration(line);
}

}  // namespace

LogLineReader read_fairseq(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    // Its first process alone prints.
    if (line.text.find("overflow detected") != std::string_view::npos) {
      const auto next = number_after<double>(line.text, "setting loss scale to:");
      if (auto overflow = halved_scale(next, "fairseq")) {
        overflow->has_rank = true;
        sink.overflow(*overflow);
      } else {
        reject_scale(next, sink);
      }
    }
    find_update(line.text, sink);
    return false;
  };
}

}  // namespace halfscope
