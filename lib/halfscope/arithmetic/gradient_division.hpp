// Where and how data-parallel training divides a sum of gradients by the number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

/// One operation on numbers of the wire's format; its result is rounded to that format.
struct DivisionStep {
  enum class Kind : std::uint8_t {
    none,
    multiply,          ///< x * c in FP32, as an operation of PyTorch on a tensor of 16 bits computes
    multiply_rounded,  ///< x * c, c rounded to the wire's format first, as ncclAvg has it
    divide,            ///< x / c in FP32
  };
  Kind kind = Kind::none;
  float constant = 1;

  friend bool operator==(const DivisionStep&, const DivisionStep&) = default;
};

/// Before the sum on every rank, and after it.
struct DivisionSteps {
  DivisionStep before{}, after{};
};

/// Each makes the steps for N ranks.
namespace division {
/// Times 1/N, in double and then in FP32, before.
[[nodiscard]] DivisionSteps multiply_before(std::int64_t ranks);
/// The same after the sum.
[[nodiscard]] DivisionSteps multiply_after(std::int64_t ranks);
/// By N, before.
[[nodiscard]] DivisionSteps divide_before(std::int64_t ranks);
/// By f before and by N / f after, f the power of two near the root of N. Source: PyTorch,
/// torch/distributed/algorithms/_comm_hooks/default_hooks.py.
[[nodiscard]] DivisionSteps divide_by_roots(std::int64_t ranks);
/// Times 1/N rounded to the wire's format, before.
[[nodiscard]] DivisionSteps multiply_rounded_before(std::int64_t ranks);
/// None.
[[nodiscard]] DivisionSteps no_steps(std::int64_t ranks);
}  // namespace division

struct DivisionRule {
  std::string_view name;
  std::string_view summary;
  DivisionSteps (*steps)(std::int64_t ranks);
};

/// Rules that `halfscope list divisions` shows.
inline constexpr std::array division_rules{
    DivisionRule{"ddp", "PyTorch DDP: times 1/N before the sum", division::multiply_before},
    DivisionRule{"fp16_compress_hook", "PyTorch DDP's hook: by N in the wire's format before the sum",
                 division::divide_before},
    DivisionRule{"fsdp", "FSDP: by a power of two near the root of N before, by the rest after",
                 division::divide_by_roots},
    DivisionRule{"nccl_avg", "ncclAvg (Horovod over NCCL): times 1/N rounded to the wire's format before",
                 division::multiply_rounded_before},
    DivisionRule{"deepspeed", "DeepSpeed: times 1/N after the sum", division::multiply_after},
    DivisionRule{"deepspeed_prescale", "DeepSpeed's prescale_gradients: times 1/N before",
                 division::multiply_before},
    DivisionRule{"megatron", "Megatron-LM: times 1/N before", division::multiply_before},
    DivisionRule{"horovod", "Horovod over MPI: times 1/N after the sum", division::multiply_after},
    DivisionRule{"apex", "Apex DDP: times 1/N after the sum", division::multiply_after},
    DivisionRule{"sum", "no division: N times the mean", division::no_steps},
};

/// A rule, or a number f: gradients times 1/f before the sum and f/N after it, as the pre-division factors of
/// Apex, DeepSpeed and Horovod.
struct GradientDivision {
  const DivisionRule* rule = &division_rules.front();  ///< null of a number
  double factor = 1;

  friend bool operator==(const GradientDivision&, const GradientDivision&) = default;
};

[[nodiscard]] std::string to_string(const GradientDivision& division);
/// Throws InvalidArgument for an unknown rule, with the nearest one, and for a number that is not positive
/// and of FP32's range.
[[nodiscard]] GradientDivision parse_gradient_division(std::string_view text);

/// The steps for so many ranks, the constants of multiply_rounded rounded to `wire`.
[[nodiscard]] DivisionSteps division_steps(const GradientDivision& division, std::int64_t ranks,
                                           const FloatFormat& wire);

}  // namespace halfscope
