// Reads records line by line.
#include "experiments/results/records_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

/// The library's words without its "[json.exception.type_error.302] ".
std::string_view words_of(const nlohmann::json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

}  // namespace

void read_records(const std::filesystem::path& path, const std::function<Reading(const Json& record)>& take) {
  std::ifstream file(path);
  read_records_of(file, path, take);
}

void read_records_of(std::istream& text, const std::filesystem::path& path,
                     const std::function<Reading(const Json& record)>& take) {
  std::size_t number = 1;
  for (std::string line; std::getline(text, line) && !text.eof(); ++number) {
    const std::string where = fmt::format("{}: line {}", printable(path), number);
    const Json record = parse_json(line, where);
    try {
      if (take(record) == Reading::ends) return;
    } catch (const nlohmann::json::exception& error) {
      throw InvalidArgument(fmt::format("{}: {}", where, words_of(error)));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", where, error.what()));
    }
  }
}

}  // namespace halfscope
