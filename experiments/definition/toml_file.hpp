// TOML files: entries in the order in which they are written, errors with line and column.
#pragma once

#define TOML_HEADER_ONLY 0  // toml_file.cpp holds the parser
#include <toml++/toml.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/error.hpp>

namespace halfscope {

struct TomlEntry {
  std::string_view key;
  toml::source_region place;  ///< place of the key
  const toml::node* value;
};

/// The entries of `table` as the file has them; a toml::table is sorted by name.
[[nodiscard]] std::vector<TomlEntry> in_file_order(const toml::table& table);

/// `value` in quotes, escaped as TOML has it.
[[nodiscard]] std::string toml_quoted(std::string_view value);

/// `key` as it can stand before an equals sign: in quotes where it has to.
[[nodiscard]] std::string toml_key(std::string_view key);

/// Texts as a list.
[[nodiscard]] std::string toml_list(const std::vector<std::string>& texts);

/// A parsed file. Its functions throw InvalidArgument, "PATH: line L, column C: ...", for an entry of another
/// type than the one asked for.
class TomlFile {
 public:
  /// Parses `text`; throws InvalidArgument where it is not TOML.
  TomlFile(std::string_view text, std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const toml::table& root() const { return root_; }

  [[nodiscard]] const toml::table& table(const TomlEntry& entry) const;
  [[nodiscard]] std::string text(const TomlEntry& entry) const;
  [[nodiscard]] std::vector<std::string> texts(const TomlEntry& entry) const;
  [[nodiscard]] double number(const TomlEntry& entry) const;
  /// The elements of a list, each under the entry's key.
  [[nodiscard]] std::vector<TomlEntry> elements(const TomlEntry& entry) const;
  [[nodiscard]] bool flag(const TomlEntry& entry) const;
  /// 0 to `most`.
  [[nodiscard]] int whole_number(const TomlEntry& entry, int most) const;
  /// A text, a number, true or false as `--set` takes it; the numbers 1e-5 and 0.00001 both become "1e-05",
  /// and { step = 5, policy = "fp32" } "step=5, policy=fp32".
  [[nodiscard]] std::string setting(const TomlEntry& entry) const;

  /// Offers the nearest of `known` for any other key.
  void check_keys(const toml::table& table, std::span<const std::string_view> known) const;

  /// Runs `action` on the entry of `table` called `key`, if there is one, as `at` does.
  template <typename Action>
  void with_entry(const toml::table& table, std::string_view key, const Action& action) const {
    const auto found = table.find(key);
    if (found == table.end()) return;
    const TomlEntry entry{found->first.str(), found->first.source(), &found->second};
    at(entry, [&] { action(entry); });
  }

  /// Runs `action`; an InvalidArgument without a place gets the entry's.
  template <typename Action>
  void at(const TomlEntry& entry, const Action& action) const {
    try {
      action();
    } catch (const InvalidArgument& error) {
      if (has_place(error.what())) throw;
      fail(entry.place, error.what());
    }
  }
  [[noreturn]] void fail(const toml::source_region& place, std::string_view text) const;

 private:
  [[nodiscard]] bool has_place(std::string_view message) const;
  [[nodiscard]] std::string opening() const;

  std::filesystem::path path_;
  toml::table root_;
};

}  // namespace halfscope
