// One line each, whichever command has them.
#include "experiments/cli/tensors/tensor_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <halfscope/core/error.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

/// Throws InvalidArgument where a file that is no page lies at `path`: a page replaces an older one alone, as
/// FILE and PAGE are easily confused.
void require_page(const std::string& path) {
  constexpr std::string_view beginning = "<!DOCTYPE html>";
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return;
  std::string found(beginning.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  if (file.gcount() == 0 || found == beginning) return;
  throw InvalidArgument(
      fmt::format("--html: {} is there already and is no page; give another path, such as {}",
                  printable(path), printable(path + ".html")));
}

/// "12" or "all".
std::size_t parse_top(const std::string& text) {
  if (text == "all") return std::numeric_limits<std::size_t>::max();
  std::size_t rows = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (error == std::errc{} && end == text.data() + text.size() && rows > 0) return rows;
  throw InvalidArgument(fmt::format("--top '{}': give a number of rows, 1 or more, or all", text));
}

}  // namespace

void add_tensor_files(CLI::App& command, TensorOptions& options) {
  TensorSelection& selection = options.files.selection;
  command.add_option(
      "FILE", options.files.paths,
      ".npy, .npz, .safetensors, .gguf, PyTorch's .pt, .pth, .bin and .ckpt, or raw elements "
      "with --dtype; folders, quoted globs and model.safetensors.index.json stand for the files "
      "they name");
  command.add_option("--dtype", options.dtype,
                     "type of a raw file's elements: f16, bf16, f32, f64, f8_e4m3, f8_e5m2");
  command.add_flag(
      "--payload", [&selection](std::int64_t) { selection.view = QuantizedView::payload; },
      "codes and scales of quantized tensors as tensors of their own, not multiplied");
  command.add_option("--include", selection.include, "a glob: only these tensors; repeatable")
      ->allow_extra_args(false);
  command.add_option("--exclude", selection.exclude, "a glob: not these tensors; repeatable")
      ->allow_extra_args(false);
}

void add_rows_shown(CLI::App& command, TensorOptions& options) {
  command
      .add_option_function<std::string>(
          "--top", [&options](const std::string& text) { options.top = parse_top(text); },
          fmt::format("only the first N, or all; otherwise the {} worst of more tensors", rows_by_default))
      ->type_name("N|all");
}

void add_output(CLI::App& command, TensorOptions& options) {
  command.add_option("--table", options.table, "text, csv, markdown, latex, or json: a line for each row")
      ->capture_default_str();
  command.add_flag("--json", options.json, "as one JSON document on stdout");
}

void add_page(CLI::App& command, TensorOptions& options, const std::string& help) {
  command.add_option("--html", options.page, help)->type_name("PAGE");
}

void add_threads(CLI::App& command, TensorOptions& options) {
  command.add_option("--threads", options.threads, "threads; results do not depend on them")
      ->check(CLI::Range(1, 1024));
}

TensorFiles files_of(const TensorOptions& options) {
  TensorFiles files = options.files;
  if (options.dtype) files.selection.raw_type = parse_enum<DType>("dtype", *options.dtype);
  require_page(options.page);
  return files;
}

void set_threads(const TensorOptions& options) {
  set_thread_count(options.threads > 0 ? options.threads
                                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

double parse_share(std::string_view what, std::string_view text) {
  std::string_view number = trimmed(text);
  const bool percent = number.ends_with('%');
  if (percent) number = trimmed(number.substr(0, number.size() - 1));
  // "0.1%" is read as 0.1e-2: the double next to 1/1000, which is what a share of 1 in 1000 compares with.
  const bool plain = number.find_first_not_of("0123456789.") == std::string_view::npos && !number.empty();
  const std::string digits = std::string(number) + (percent ? "e-2" : "");
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = plain && error == std::errc{} && end == digits.data() + digits.size();
  if (!read || value > 1) {
    throw InvalidArgument(
        fmt::format("{}: '{}' is no share; give one from 0 to 1, such as 0.02 or 2%", what, text));
  }
  return value;
}

std::string page_title(const TensorFiles& files, std::size_t count, const std::string& formats) {
  const std::string name = files.paths.size() == 1
                               ? std::filesystem::path(files.paths.front()).filename().string()
                               : fmt::format("{} files", count);
  return fmt::format("{} in {}", name, formats);
}

}  // namespace halfscope
