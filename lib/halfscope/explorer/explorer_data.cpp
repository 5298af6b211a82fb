// Collects the explorer's counts and renders them as JSON.
#include <halfscope/explorer/explorer_data.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <halfscope/core/error.hpp>
#include <halfscope/explorer/detail/format_json.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

/// The formats that a reader can switch to, beside that of the counts.
constexpr std::array offered{fp16, bf16, fp8_e4m3, fp8_e5m2};

Json formats_json(const FloatFormat& own) {
  Json list = Json::array();
  if (std::find(offered.begin(), offered.end(), own) == offered.end())
    list.push_back(detail::format_json(own));
  for (const FloatFormat& format : offered) list.push_back(detail::format_json(format));
  return list;
}

/// Index and count of the binades in which `member` counts anything.
Json pairs(const BinadeTotals& totals, int first, std::int64_t BinadeCounts::*member) {
  Json list = Json::array();
  for (const auto& [exponent, counts] : totals.binades) {
    if (counts.*member == 0) continue;
    list.push_back(exponent - first);
    list.push_back(counts.*member);
  }
  return list;
}

Json cell_json(const BinadeTotals& totals) {
  const int first = totals.binades.empty() ? 0 : totals.binades.begin()->first;
  Json all = Json::array();
  for (const auto& [exponent, counts] : totals.binades) {
    while (static_cast<int>(all.size()) < exponent - first) all.push_back(0);
    all.push_back(counts.all);
  }
  return Json::array({totals.zeros, totals.nonfinite, first, all,
                      pairs(totals, first, &BinadeCounts::at_power_of_two),
                      pairs(totals, first, &BinadeCounts::rounds_to_overflow),
                      pairs(totals, first, &BinadeCounts::rounds_to_normal)});
}

Json tensor_json(const ExploredTensor& tensor, const std::vector<std::int64_t>& steps, const TensorFit* fit) {
  Json cells = Json::array();
  for (const std::int64_t step : steps) {
    const auto found = tensor.steps.find(step);
    cells.push_back(found == tensor.steps.end() ? Json() : cell_json(found->second));
  }
  Json fits;
  if (fit != nullptr && !fit->any_scale) fits = {fit->underflow_low, fit->overflow_high};
  return {{"name", tensor.name}, {"role", tensor.role}, {"fits", fits}, {"cells", cells}};
}

Json advice_json(const Advice& advice) {
  Json window, use;
  if (advice.joint) window = {advice.joint->low, advice.joint->high};
  if (advice.recommended) use = *advice.recommended;
  return {{"window", window}, {"use", use}, {"verdict", advice.verdict}};
}

std::vector<std::int64_t> steps_of(const ExplorerData& data) {
  std::set<std::int64_t> steps;
  for (const ExploredTensor& tensor : data.tensors()) {
    for (const auto& [step, totals] : tensor.steps) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

void add_to(BinadeCounts& sum, const BinadeCounts& counts) {
  sum.all += counts.all;
  sum.at_power_of_two += counts.at_power_of_two;
  sum.rounds_to_overflow += counts.rounds_to_overflow;
  sum.rounds_to_normal += counts.rounds_to_normal;
}

}  // namespace

void BinadeTotals::add(const ExponentHistogram& histogram, int shift_log2) {
  const BinadeRange range = filled_binades(histogram);
  int exponent = range.first_exponent + shift_log2;
  for (const BinadeCounts& counts : range.binades) {
    const int here = exponent++;
    if (counts.all > 0) add_to(binades[here], counts);
  }
  zeros += histogram.zeros();
  nonfinite += histogram.infinities() + histogram.nans();
}

void BinadeTotals::add(const BinadeTotals& other) {
  for (const auto& [exponent, counts] : other.binades) add_to(binades[exponent], counts);
  zeros += other.zeros;
  nonfinite += other.nonfinite;
}

void ExplorerData::add(const std::string& name, const std::string& role, std::int64_t step,
                       const ExponentHistogram& histogram, int shift_log2) {
  if (histogram.format() != format_) {
    throw InvalidArgument(fmt::format("'{}' was counted for {}, not for {}", name,
                                      to_string(histogram.format()), to_string(format_)));
  }
  BinadeTotals totals;
  totals.add(histogram, shift_log2);
  add(name, role, step, totals);
}

void ExplorerData::add(const std::string& name, const std::string& role, std::int64_t step,
                       const BinadeTotals& totals) {
  const auto [place, is_new] = places_.try_emplace(name, tensors_.size());
  if (is_new) tensors_.push_back({name, role, {}});
  tensors_[place->second].steps[step].add(totals);
}

void ExplorerData::advise(std::span<const TensorFit> fits, Advice advice) {
  for (const TensorFit& fit : fits) fits_.insert_or_assign(fit.name, fit);
  advice_ = std::move(advice);
}

std::string format_label(const FloatFormat& format) {
  std::string label = to_string(format);
  for (char& letter : label) {
    if (letter == '_') letter = ' ';
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return label;
}

std::string explorer_json(const ExplorerData& data) {
  const std::vector<std::int64_t> steps = steps_of(data);
  Json tensors = Json::array(), marks = Json::array();
  for (const ExploredTensor& tensor : data.tensors()) {
    const auto fit = data.fits().find(tensor.name);
    tensors.push_back(tensor_json(tensor, steps, fit == data.fits().end() ? nullptr : &fit->second));
  }
  for (const ScaleMark& mark : data.marks())
    marks.push_back({{"label", mark.label}, {"log2", mark.scale_log2}});
  const Json json{{"format", to_string(data.format())},
                  {"formats", formats_json(data.format())},
                  {"start", data.start_log2()},
                  {"steps", steps},
                  {"tensors", tensors},
                  {"marks", marks},
                  {"advice", advice_json(data.advice())}};
  return detail::script_json(json);
}

}  // namespace halfscope
