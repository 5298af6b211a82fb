// A folder for the files that a case of `halfscope bench` reads.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <halfscope/core/error.hpp>

namespace halfscope {

/// Removed at the end.
class BenchFolder {
 public:
  BenchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halfscope-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw RuntimeFailure("cannot make a folder: " + name);
    path_ = name;
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace halfscope
