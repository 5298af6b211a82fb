// Data-parallel training on 1 to 4,096 virtual ranks, with gradients reduced in FP16 and in FP32.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/sgd_classifier.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace data_parallel {
namespace {

constexpr const char* paper_statement =
    "No such experiment: the paper trains on several GPUs and does not say in which format gradients were "
    "reduced.";

struct ParallelTask {
  std::string_view name, summary;
  Settings (*settings)();
  std::int64_t most_ranks;
};

/// Examples of a batch; a larger number of ranks has one each.
constexpr std::int64_t common_batch = 512;

constexpr std::array parallel_tasks{
    ParallelTask{"classifier", "classifier",
                 [] {
                   return with(sgd_classifier_settings(), {{"steps", "100"}});
                 },
                 4096},
    ParallelTask{"words", "GRU language model",
                 [] {
                   return with(language_model_settings(), {{"steps", "100"},
                                                           {"vocabulary", "1000"},
                                                           {"sequence_length", "16"},
                                                           {"embedding_size", "32"}});
                 },
                 512},
};

struct Reduction {
  std::string_view name, summary, all_reduce;
};
constexpr Reduction in_fp32{"fp32", "reduced in FP32", "nccl_ring/fp32"};
constexpr Reduction ring{"ring", "reduced in FP16, NCCL's ring", "nccl_ring"};
constexpr Reduction tree{"tree", "reduced in FP16, NCCL's tree", "nccl_tree"};

constexpr std::array<std::int64_t, 4> several_ranks{8, 64, 512, 4096};

std::vector<std::int64_t> several_ranks_of(const ParallelTask& task) {
  std::vector<std::int64_t> all;
  std::ranges::copy_if(several_ranks, std::back_inserter(all),
                       [&](std::int64_t ranks) { return ranks <= task.most_ranks; });
  return all;
}

std::string arm_name(const ParallelTask& task, std::int64_t ranks, const Reduction& reduction) {
  return fmt::format("{}_{}_{}", task.name, ranks, reduction.name);
}

Arm arm_of(const ParallelTask& task, std::int64_t ranks, const Reduction& reduction) {
  return {arm_name(task, ranks, reduction),
          fmt::format("{} on {} ranks, {}", task.summary, ranks, reduction.summary),
          with(task.settings(), {{"ranks", std::to_string(ranks)},
                                 {"batch", std::to_string(std::max(ranks, common_batch))},
                                 {"all_reduce", std::string(reduction.all_reduce)}})};
}

std::vector<Arm> arms_of(std::initializer_list<Reduction> reductions, std::int64_t most_ranks) {
  std::vector<Arm> all;
  for (const ParallelTask& task : parallel_tasks) {
    all.push_back(arm_of(task, 1, in_fp32));
    all.back().name = fmt::format("{}_1", task.name);
    all.back().summary = fmt::format("{} on one rank", task.summary);
    for (const std::int64_t ranks : several_ranks_of(task)) {
      if (ranks > most_ranks) continue;
      for (const Reduction& reduction : reductions) all.push_back(arm_of(task, ranks, reduction));
    }
  }
  return all;
}

std::vector<Arm> arms() {
  return arms_of({in_fp32, ring, tree}, several_ranks.back());
}

std::vector<std::string> quick_arms() {
  std::vector<std::string> names;
  for (const Arm& arm : arms_of({in_fp32, ring}, 64)) names.push_back(arm.name);
  return names;
}

/// Of the training loss on as many ranks, what separates harm from the noise between roundings.
constexpr double close = 0.05;

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const ParallelTask& task : parallel_tasks) {
    for (const std::int64_t ranks : several_ranks_of(task))
      all.push_back({arm_name(task, ranks, ring), arm_name(task, ranks, in_fp32), Expected::as_good, close});
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const ParallelTask& task : parallel_tasks) {
    for (const std::int64_t ranks : several_ranks_of(task)) {
      for (const Reduction& reduction : {ring, tree}) {
        const std::string arm = arm_name(task, ranks, reduction);
        if (summary.find(arm) == nullptr) continue;
        text += (text.empty() ? "" : "; ") + against_baseline(summary, arm, arm_name(task, ranks, in_fp32));
      }
    }
  }
  if (text.empty()) return "No all-reduce in FP16 was run.";
  return text +
         ". Batch norm of the classifier normalises each rank's part by itself, so that its results are to "
         "be compared on as many ranks.";
}

}  // namespace
}  // namespace data_parallel

Experiment make_data_parallel() {
  using namespace data_parallel;
  return {
      .name = "data-parallel",
      .summary = "a classifier and a language model on 1 to 4,096 virtual ranks, reduced in FP16 and in FP32",
      .paper = paper_statement,
      .claim = {"An all-reduce of FP16 gradients trains as one in FP32 on up to 4,096 ranks.",
                expectations()},
      .metric = {.key = "train_loss",
                 .name = "train loss",
                 .unit = "",
                 .comparison = Comparison::ratio,
                 .lower_is_better = true,
                 .digits = 4},
      .settings = {{"policy", "fp16_mixed"}, {"loss_scale", "1024"}, {"observe_every", "25"}},
      .varied = {"ranks", "batch", "all_reduce"},
      .arms = arms(),
      .quick_arms = quick_arms(),
      .quick_set = QuickSet::left_out,
      .verdict = verdict};
}

}  // namespace halfscope
