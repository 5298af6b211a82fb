// Options that the commands on files of tensors have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

/// Values of the options that are no TensorFiles yet, or that say how a command runs and prints.
struct TensorOptions {
  TensorFiles files;
  std::optional<std::string> dtype;
  std::optional<std::size_t> top;  ///< rows to show, any number for all of them
  std::string table = "text", page;
  int threads = 0;
  bool json = false, quiet = false;
};

/// FILE, and the options that choose among its tensors.
void add_tensor_files(CLI::App& command, TensorOptions& options);
/// --top.
void add_rows_shown(CLI::App& command, TensorOptions& options);
/// --table and --json.
void add_output(CLI::App& command, TensorOptions& options);
/// --html, with its help.
void add_page(CLI::App& command, TensorOptions& options, const std::string& help);
void add_threads(CLI::App& command, TensorOptions& options);

/// The files with the type of their elements. Throws InvalidArgument for an unknown type, and for a page that
/// would replace a file of another kind.
[[nodiscard]] TensorFiles files_of(const TensorOptions& options);
/// Has as many threads as were asked for, or as the machine has.
void set_threads(const TensorOptions& options);

/// "2%", "0.02", "2 %" as a share from 0 to 1; throws InvalidArgument naming `what`.
[[nodiscard]] double parse_share(std::string_view what, std::string_view text);

/// Title of a page: "model.safetensors in 3 formats".
[[nodiscard]] std::string page_title(const TensorFiles& files, std::size_t count, const std::string& formats);

/// Rows of a table that nobody has asked to be sorted or cut.
inline constexpr std::size_t rows_by_default = 20;

}  // namespace halfscope
