// Fuzzes the reader of message catalogues, and the tokens of what it reads.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <halfscope/core/error.hpp>

#include "sim/data/message_catalogue.hpp"
#include "sim/data/sentence_tokens.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace halfscope;
  try {
    for (const Message& message : parse_catalogue({reinterpret_cast<const char*>(bytes), size}, "input")) {
      static_cast<void>(sentence_tokens(message.source));
      static_cast<void>(sentence_tokens(message.target));
    }
  } catch (const InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.size() > 1000 || message.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
