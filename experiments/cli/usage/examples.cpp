// Examples and exit statuses of each command.
#include <array>

#include "experiments/cli/usage/help.hpp"

namespace halfscope {
namespace {

using namespace std::string_view_literals;

constexpr auto usual_statuses = "0 done; 2 the request is wrong; 3 the output cannot be written"sv;

constexpr std::array list_examples{"halfscope list experiments"sv, "halfscope list scalers --json"sv};
constexpr std::array run_examples{"halfscope run master-copy --quick"sv,
                                  "halfscope run scale-sweep --arms fp32,s8 --seeds 3 --jobs 2"sv,
                                  "halfscope run master-copy scale-sweep --quick --jobs 2"sv,
                                  "halfscope run mine.toml --jobs 2"sv,
                                  "halfscope run master-copy --set learning_rate=0.01 --out my-results"sv,
                                  "halfscope run master-copy --out my-results --resume"sv,
                                  "halfscope run scale-sweep --shard 2/3 --resume"sv};
constexpr std::array report_examples{"halfscope report results"sv,
                                     "halfscope report my-results/master-copy --table csv --sort mean"sv};
constexpr std::array compare_examples{"halfscope compare results other-results"sv,
                                      "halfscope compare cpu/master-copy gpu/master-copy --json"sv};
constexpr std::array analyze_examples{
    "halfscope analyze gradients.safetensors"sv,
    "halfscope analyze model.pt --sort flushed"sv,
    "halfscope analyze model/ --group 'model.layers.*.{attn,mlp}'"sv,
    "halfscope analyze 'shards/*.safetensors' --include '*.weight' --sort flushed --top 10"sv,
    "halfscope analyze grads.npz --fail-on 'flushed>2%' --quiet"sv,
    "halfscope analyze fp16.safetensors --against fp32.safetensors --sort relative_error"sv};
constexpr std::array formats_examples{
    "halfscope formats model.pt"sv,
    "halfscope formats model.safetensors --format fp8_e4m3,mxfp8_e4m3,nvfp4 --max-error 5%"sv,
    "halfscope formats model/ --format mxfp4,mxfp4/floor,mxfp4/even --include '*.weight' --json"sv};
constexpr std::array updates_examples{
    "halfscope updates updates.npz --weights weights.npz"sv,
    "halfscope updates u.safetensors --weights w.safetensors --format bf16 --max-lost 10%"sv};
constexpr std::array replay_examples{
    "halfscope replay results/loss-scale/fp16_dynamic/seed0/metrics.jsonl --scaler all"sv,
    "halfscope replay metrics.jsonl --scaler dynamic,1024 --set growth_interval=200"sv,
    "halfscope replay train.log --scaler all"sv,
    "halfscope replay metrics.jsonl --scaling 'current,delayed(history=16, most_recent)'"sv,
    "halfscope replay <(zcat metrics.jsonl.gz) --scaler all --json"sv};
constexpr std::array memory_examples{
    "halfscope memory resnet50 --images 224x224x3 --set width=1 --policy fp16_mixed --batch 32"sv,
    "halfscope memory gru_lm --set dataset=kjv_text --optimizer adam --layers"sv};
constexpr std::array calc_examples{
    "halfscope calc add 0.1 0.2 --explain"sv,
    "halfscope calc fma 1.5 -2 0.1 --format bf16 --rounding up"sv,
    "halfscope calc round 0x3c01 --from fp16 --format fp8_e4m3"sv,
    "halfscope calc add -- -inf -.5"sv,
    "halfscope calc dot --order 'tensor_core(hopper)' 1 2 3 0.5 0"sv,
    "halfscope calc dot --order mxf4nvf4 --input nvfp4 1 2 3 0.5 0 --explain"sv,
    "halfscope calc div --stdin < operands.txt"sv};
constexpr std::array bench_examples{"halfscope bench"sv, "halfscope bench round_fp16 gemm --json"sv};
constexpr std::array generate_examples{
    "halfscope generate bash > ~/.local/share/bash-completion/completions/halfscope"sv,
    "halfscope generate zsh > ~/.zfunc/_halfscope"sv, "halfscope generate man | man -l -"sv};

constexpr std::array usages{
    CommandUsage{"list", list_examples, usual_statuses},
    CommandUsage{"run", run_examples,
                 "0 done; 2 the request is wrong; 3 a run failed, or SIGTERM stopped it"},
    CommandUsage{"report", report_examples, usual_statuses},
    CommandUsage{"compare", compare_examples,
                 "0 the same; 1 runs differ; 2 the request is wrong; 3 the output cannot be written"},
    CommandUsage{
        "analyze", analyze_examples,
        "0 done; 1 a tensor is over --fail-on; 2 the request or a file is wrong; 3 the output cannot "
        "be written"},
    CommandUsage{"formats", formats_examples,
                 "0 done; 1 no format is within --max-error; 2 the request or a file is wrong; 3 the output "
                 "cannot be written"},
    CommandUsage{"updates", updates_examples,
                 "0 done; 1 a tensor is over --max-lost; 2 the request or a file is wrong; 3 the output "
                 "cannot be written"},
    CommandUsage{"replay", replay_examples, usual_statuses},
    CommandUsage{"memory", memory_examples, usual_statuses},
    CommandUsage{"calc", calc_examples,
                 "0 done; 2 the request or a line of --stdin is wrong; 3 the output cannot be written"},
    CommandUsage{"bench", bench_examples, usual_statuses},
    CommandUsage{"generate", generate_examples, usual_statuses},
};

}  // namespace

std::span<const CommandUsage> command_usages() {
  return usages;
}

}  // namespace halfscope
