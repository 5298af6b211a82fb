// halfscope formats: formats held against each other over tensors of the user's own.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include <halfscope/core/name_list.hpp>
#include <halfscope/explorer/formats_data.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/format_option.hpp"
#include "experiments/cli/formats/formats_present.hpp"
#include "experiments/cli/tensors/tensor_labels.hpp"
#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {
namespace {

struct FormatsOptions {
  TensorOptions tensors;
  std::vector<std::string> formats{"mxfp8_e4m3,nvfp4,mxfp4"};
  std::optional<std::string> max_error;
  std::int64_t axis = -1;
};

/// Names between commas, each format once; commas in parentheses belong to a name.
std::vector<TensorFormat> formats_of(const std::vector<std::string>& lists) {
  std::vector<TensorFormat> formats;
  for (const std::string& list : lists) {
    for (const std::string_view name : split_outside_parentheses(list, ','))
      append_new(parse_tensor_format_option(name), formats);
  }
  return formats;
}

FormatsRequest request_of(const FormatsOptions& options) {
  FormatsRequest request{.input = files_of(options.tensors),
                         .compared = {formats_of(options.formats), options.axis},
                         .counted = {},
                         .page = options.tensors.page};
  if (options.max_error) request.max_error = parse_error_limit(*options.max_error);
  request.counted = request.compared;
  if (request.page.empty()) return request;
  request.counted.formats = with_all_rules(request.compared.formats);
  request.counted.exponents = ScaledExponents::counted;
  return request;
}

void label_tensors(FormatsFound& found, Labels kind) {
  TensorLabels labels(kind, found.read.files);
  for (const TensorInFormats& tensor : found.tensors) labels.see(tensor.name, tensor.file);
  for (TensorInFormats& tensor : found.tensors) tensor.label = labels.of(tensor.name, tensor.file);
  labels.label(found.read.skipped);
}

/// All tensors, but for a table of the terminal that nobody asked to be complete: a tensor has a row for each
/// format.
std::size_t tensors_shown(const TensorOptions& options, const FormatsFound& found) {
  const bool is_text = !options.json && options.table == "text";
  if (options.top || !is_text) return options.top.value_or(found.tensors.size());
  return std::max<std::size_t>(1, rows_by_default / found.compared.formats.size());
}

std::string text_of(const TensorOptions& options, const FormatsFound& found) {
  const std::size_t top = tensors_shown(options, found);
  if (options.json) return formats_json(found, top);
  if (options.quiet) return cheapest_line(compare_formats(found)) + "\n";
  const auto format = parse_enum<TableFormat>("table format", options.table);
  return format == TableFormat::text ? formats_text(found, top, output_width())
                                     : formats_table(found, top, format);
}

/// The limit is judged where it was given.
void run(const FormatsOptions& options) {
  const FormatsRequest request = request_of(options);
  set_threads(options.tensors);
  allow_many_files();
  FormatsFound found = count_files(request);
  label_tensors(found, options.tensors.json ? Labels::with_file : Labels::shortest);
  if (found.tensors.empty()) throw Exit{found.read.status};
  if (!request.page.empty()) write_formats_page(request, found);
  std::cout << text_of(options.tensors, found);
  const bool is_over = options.max_error && !compare_formats(found).cheapest;
  throw Exit{std::max(found.read.status, is_over ? found_something : done)};
}

void add_judging(CLI::App& command, FormatsOptions& options) {
  command
      .add_option("--format", options.formats,
                  "formats, with commas: mxfp8_e4m3,nvfp4,mxfp4 by default; with a scale rule as in "
                  "nvfp4/torchao, or without blocks as fp8_e4m3; repeatable")
      ->allow_extra_args(false);
  command.add_option(
      "--max-error", options.max_error,
      "of every tensor, norm of the error over its own, as in 5%, or signal over noise, as in 26dB; 5% by "
      "default; exit 1 where no format is within it");
  command.add_option("--axis", options.axis, "the axis that blocks run along, the last by default");
}

}  // namespace

void add_formats_command(CLI::App& app) {
  auto options = std::make_shared<FormatsOptions>();
  CLI::App* command = app.add_subcommand(
      "formats", "weights, activations or gradients of your own: the cheapest format that keeps them");
  add_tensor_files(*command, options->tensors);
  add_judging(*command, *options);
  add_rows_shown(*command, options->tensors);
  command->add_flag("-q,--quiet", options->tensors.quiet, "the line of the cheapest format alone");
  add_output(*command, options->tensors);
  add_page(*command, options->tensors,
           "also writes a page, one file for a browser: each format under each scale rule");
  add_threads(*command, options->tensors);
  command->get_option("FILE")->required();
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
