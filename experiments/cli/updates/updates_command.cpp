// halfscope updates: updates that weights in a 16-bit format do not feel.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/format_option.hpp"
#include "experiments/cli/tensors/named_shares.hpp"
#include "experiments/cli/tensors/tensor_labels.hpp"
#include "experiments/cli/tensors/tensor_options.hpp"
#include "experiments/cli/updates/updates_present.hpp"

namespace halfscope {
namespace {

struct UpdatesOptions {
  TensorOptions tensors;
  std::vector<std::string> weights;
  std::string format = "fp16";
  std::optional<std::string> max_lost;
};

void label(std::vector<UpdateCounts>& updates, Labels kind) {
  const TensorLabels labels(kind, 1);
  for (UpdateCounts& update : updates) update.name = labels.alone(update.name);
}

std::string text_of(const TensorOptions& options, const UpdatesRequest& request,
                    const std::vector<UpdateCounts>& updates) {
  if (options.json) return updates_json(request, updates);
  if (options.quiet) return lost_line(updates) + "\n";
  const auto format = parse_enum<TableFormat>("table format", options.table);
  return format == TableFormat::text ? updates_text(request, updates, output_width())
                                     : updates_table(updates, format);
}

/// Tensors that lose more than `text` says; a limit that had nothing to judge is a wrong request.
ExitStatus judge(const std::vector<UpdateCounts>& updates, double limit, const std::string& text) {
  if (!sum_of(updates).lost_share()) {
    print_error(fmt::format("--max-lost '{}': there is nothing to judge: no update is finite", text));
    return wrong_request;
  }
  std::vector<NamedShare> over;
  for (const UpdateCounts& update : updates) {
    if (const auto share = update.lost_share(); share && *share > limit)
      over.push_back({update.name, *share});
  }
  if (over.empty()) return done;
  print_error(fmt::format("--max-lost {}: {}", text, first_shares(over)));
  return found_something;
}

void run(const UpdatesOptions& options) {
  const UpdatesRequest request{files_of(options.tensors), options.weights,
                               parse_counted_format(options.format)};
  const double limit = options.max_lost ? parse_share("--max-lost", *options.max_lost) : 1;
  set_threads(options.tensors);
  allow_many_files();
  std::vector<UpdateCounts> updates = count_updates(request);
  label(updates, options.tensors.json ? Labels::with_file : Labels::shortest);
  std::cout << text_of(options.tensors, request, updates);
  throw Exit{options.max_lost ? judge(updates, limit, *options.max_lost) : done};
}

void add_judging(CLI::App& command, UpdatesOptions& options) {
  command
      .add_option("--weights", options.weights,
                  "a FILE of weights, under the names of their updates; repeatable")
      ->allow_extra_args(false)
      ->required();
  command.add_option("--format", options.format, "format of the stored weights: fp16, bf16, any eXmY")
      ->capture_default_str();
  command.add_option("--max-lost", options.max_lost,
                     "SHARE, as 2%: exit 1 where a tensor loses a larger share of its updates");
}

}  // namespace

void add_updates_command(CLI::App& app) {
  auto options = std::make_shared<UpdatesOptions>();
  CLI::App* command = app.add_subcommand(
      "updates", "updates of your own, and their weights: which of them FP16 weights would lose");
  add_tensor_files(*command, options->tensors);
  add_judging(*command, *options);
  command->add_flag("-q,--quiet", options->tensors.quiet, "the share that is lost alone");
  add_output(*command, options->tensors);
  add_threads(*command, options->tensors);
  command->get_option("FILE")->required();
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
