// A count is a sum of powers of two: the codes that have one of them in theirs are summarised once, as
// floats, and count that often. So every figure has one definition, and no code is looked at more often than
// it occurs.
#include <halfscope/stats/detail/code_summary.hpp>

#include <algorithm>
#include <bit>

#include <halfscope/kernel/cast/convert.hpp>

namespace halfscope {

std::vector<float> numbers_of_codes(DType type) {
  const std::size_t width = bytes_per_element(type), codes = code_count(width);
  std::vector<std::byte> stored(codes * width);
  for (std::size_t code = 0; code < codes; ++code) {
    for (std::size_t i = 0; i < width; ++i)
      stored[code * width + i] = static_cast<std::byte>(code >> (8 * i));
  }
  std::vector<float> numbers(codes);
  widen(type, stored.data(), numbers);
  return numbers;
}

TensorSummary summarise_codes(const CodeCounts& counts, DType type, const FloatFormat& format) {
  const std::span<const std::int64_t> times = counts.totals();
  const std::vector<float> numbers = numbers_of_codes(type);
  const auto most = static_cast<std::uint64_t>(*std::max_element(times.begin(), times.end()));
  TensorSummary summary(format);
  std::vector<float> chosen(numbers.size());
  for (int digit = 0; digit < static_cast<int>(std::bit_width(most)); ++digit) {
    std::size_t count = 0;
    for (std::size_t code = 0; code < numbers.size(); ++code) {
      chosen[count] = numbers[code];  // kept or written over: a branch would be guessed wrong half the time
      count += static_cast<std::size_t>((times[code] >> digit) & 1);
    }
    SummaryPass pass(format);
    pass.add(std::span(chosen).first(count));
    summary.merge(pass.summary(), std::int64_t{1} << digit);
  }
  return summary;
}

}  // namespace halfscope
