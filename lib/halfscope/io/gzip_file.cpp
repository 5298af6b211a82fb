// Reads gzip files with zlib.
#include <halfscope/io/file.hpp>

#include <zlib.h>

#include <array>
#include <memory>

#include <halfscope/core/error.hpp>

namespace halfscope {

std::string read_gzip_file(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw InvalidArgument(printable(path) + ": it cannot be opened");
  std::string content;
  std::array<char, 1 << 16> part{};
  while (true) {
    const int count = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()));
    int status = Z_OK;
    const std::string reason = gzerror(file.get(), &status);
    if (count < 0 || status == Z_BUF_ERROR)  // zlib's word for a file that ends early
      throw InvalidArgument(printable(path) + ": " +
                            (count < 0 ? reason : "it ends within its compressed data"));
    if (count == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace halfscope
