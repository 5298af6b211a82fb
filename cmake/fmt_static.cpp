// fmt as a static library, which distributions do not have: its headers, with every function emitted here
// once.
#define FMT_HEADER_ONLY
#undef FMT_SHARED
#include <fmt/format.h>
