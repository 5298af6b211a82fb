// The names of scales, steps, norms and losses in logs.
#include <algorithm>
#include <array>
#include <span>

#include <halfscope/scaling/detail/log_fields.hpp>

namespace halfscope {
namespace {

using Names = std::span<const std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

bool ends_with_one_of(std::string_view name, Names names) {
  return std::ranges::any_of(names, [&](std::string_view end) { return name.ends_with(end); });
}

/// Options of a run, and a spread over runs: not the number itself.
constexpr std::array<std::string_view, 12> no_values{"__min",     "__max", "window",  "factor",
                                                     "tolerance", "clip",  "growth",  "threshold",
                                                     "raise",     "inv_",  "inverse", "recip"};
constexpr std::array<std::string_view, 9> no_value_starts{"max_",  "min_", "initial_", "init_",    "target_",
                                                          "eval_", "old_", "prev_",    "previous_"};
/// Evaluations, whose losses tell nothing of the weights' gradients.
constexpr std::array<std::string_view, 10> evaluations{"eval", "evaluation", "val", "valid",    "validation",
                                                       "test", "testing",    "dev", "validate", "evaluate"};

constexpr std::array<std::string_view, 5> global_steps{"global_step", "current_steps", "num_updates",
                                                       "global_steps", "global_batch_idx"};
constexpr std::array<std::string_view, 13> steps{
    "it",         "step",          "steps",  "iter",    "iteration",  "iters",      "n_iter",
    "iterations", "training_step", "update", "updates", "train_step", "global_iter"};
constexpr std::array<std::string_view, 4> batches{"batch", "batch_idx", "batch_index", "minibatch"};
constexpr std::array<std::string_view, 7> scale_ends{"loss_scale",   "lossscale", "grad_scale",
                                                     "scaler_scale", "gradscale", "loss_scaler_scale",
                                                     "dynamic_scale"};
/// A scale that is a mean tells no skips.
constexpr std::array<std::string_view, 5> means{"avg", "average", "mean", "smooth", "ema_"};
constexpr std::array<std::string_view, 3> scales{"scale", "amp_scale", "loss_scale_value"};
constexpr std::array<std::string_view, 6> norm_ends{"grad_norm",     "gradnorm",    "gnorm",
                                                    "gradient_norm", "global_norm", "grad_norm_total"};
constexpr std::array<std::string_view, 2> norms{"norm", "total_norm"};
constexpr std::array<std::string_view, 14> losses{
    "loss",          "train_loss", "lm_loss",    "total_loss",   "reduced_train_loss",
    "training_loss", "avg_loss",   "avr_loss",   "average_loss", "step_loss",
    "mean_loss",     "tot_loss",   "loss_total", "batch_loss"};
constexpr std::array<std::string_view, 4> overflows{"overflow_cond", "overflow", "is_overflow", "found_inf"};
constexpr std::array<std::string_view, 2> skip_counts{"inf_nan_skip_batches", "skipped_steps"};

constexpr std::array<std::string_view, 5> scaled_things{"loss", "grad", "amp", "fp16", "scaler"};
constexpr std::array<std::string_view, 10> scale_options{"window", "growth",   "backoff", "init", "min",
                                                         "max",    "interval", "hyster",  "old",  "prev"};

constexpr std::size_t longest_name = 80;

char plain(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == ' ' || c == '-' ? '_' : c;
}

/// Whether one of the folders before a name is an evaluation's: "val/loss".
bool is_in_evaluation(std::string_view name) {
  for (std::size_t end = name.find('/'); end != std::string_view::npos; end = name.find('/')) {
    if (is_one_of(name.substr(0, end), evaluations)) return true;
    name.remove_prefix(end + 1);
  }
  return false;
}

/// In small letters, without the folder before it.
std::string plain_name(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), plain);
  if (is_in_evaluation(text)) return {};
  if (text.ends_with("global_step/max_steps")) return "global_step";
  if (text.starts_with("loss/train")) return "loss";  // Composer's
  if (text.ends_with("grad/global")) return "grad_norm";
  const std::size_t folder = text.rfind('/') + 1;
  if (folder > 0 && text.substr(folder) == "batch") return {};  // Composer's time
  text.erase(0, folder);
  text.erase(0, std::min(text.find_first_not_of('_'), text.size()));
  return text;
}

std::size_t hash_of(std::string_view name) {
  std::uint64_t hash = 1469598103934665603u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<std::size_t>(hash >> 32);
}

/// "loss_scale" of "loss_scale_g" and "loss_scale_0", as runs with several scalers print them.
std::string_view without_letter(std::string_view name) {
  const bool has_letter = name.size() > 2 && name[name.size() - 2] == '_';
  return has_letter ? name.substr(0, name.size() - 2) : name;
}

/// Whether a name may be that of a loss scale that no list has.
bool may_name_scale(std::string_view name) {
  return name.find("scal") != std::string_view::npos && has_one_of(name, scaled_things) &&
         !has_one_of(name, scale_options);
}

LogRole usual_role(std::string_view name) {
  const LogRole other = may_name_scale(name) ? LogRole::other_scale : LogRole::none;
  if (has_one_of(name, no_values)) return other;
  if (std::ranges::any_of(no_value_starts, [&](std::string_view start) { return name.starts_with(start); }))
    return other;
  if (is_one_of(name, global_steps)) return LogRole::global_step;
  if (is_one_of(name, steps)) return LogRole::step;
  if (is_one_of(name, batches)) return LogRole::batch;
  if (name == "epoch" || name == "train") return LogRole::epoch;
  if (ends_with_one_of(without_letter(name), scale_ends)) {
    if (has_one_of(name, means)) return LogRole::other_scale;
    if (name.starts_with("lg_") || name.starts_with("log2_")) return LogRole::scale_log2;
    return name.starts_with("log_") ? LogRole::none : LogRole::scale;
  }
  if (is_one_of(name, scales)) return LogRole::scale;
  if (ends_with_one_of(without_letter(name), norm_ends) || is_one_of(name, norms)) return LogRole::norm;
  if (is_one_of(name, losses)) return LogRole::loss;
  if (is_one_of(name, overflows)) return LogRole::overflow;
  return is_one_of(name, skip_counts) ? LogRole::skipped : other;
}

}  // namespace

bool has_one_of(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool is_scale_name(std::string_view name) {
  return is_scale_role(usual_role(plain_name(name)));
}

bool is_evaluation(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(), plain);
  return is_one_of(text, evaluations);
}

LogRole LogNames::find_role(std::string_view name) const {
  if (name == columns_.step) return LogRole::global_step;
  if (name == columns_.scale) return columns_.scale_is_log2 ? LogRole::scale_log2 : LogRole::scale;
  if (name == columns_.norm) return LogRole::norm;
  if (name == columns_.loss) return LogRole::loss;
  const LogRole role = usual_role(plain_name(name));
  const bool is_step = role == LogRole::global_step || role == LogRole::step || role == LogRole::batch;
  const bool is_scale = role == LogRole::scale || role == LogRole::scale_log2 || role == LogRole::other_scale;
  const bool is_replaced = (is_step && !columns_.step.empty()) || (is_scale && !columns_.scale.empty()) ||
                           (role == LogRole::norm && !columns_.norm.empty()) ||
                           (role == LogRole::loss && !columns_.loss.empty());
  return is_replaced ? LogRole::none : role;
}

const LogNames::Known& LogNames::known(std::string_view name) {
  static const Known no_name;
  if (name.empty() || name.size() > longest_name) return no_name;
  Known& known = cache_->by_hash[hash_of(name) % cache_->by_hash.size()];
  if (known.name == name) return known;
  known = {std::string(name), find_role(name)};
  if (known.role != LogRole::none) known.kept = *cache_->kept.insert(known.name).first;
  return known;
}

}  // namespace halfscope
