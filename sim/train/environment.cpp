// Reads off the machine and the build.
#include "sim/train/environment.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/device/device.hpp>

#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Build build() {
  return {HALFSCOPE_VERSION, HALFSCOPE_GIT_REVISION, compiler()};
}

Json environment() {
  const auto device = describe_cuda_device();
  const auto of_device = [&](std::string DeviceDescription::*field) {
    return device ? Json((*device).*field) : Json();
  };
  Json json{{"version", HALFSCOPE_VERSION},
            {"git_revision", HALFSCOPE_GIT_REVISION},
            {"compiler", compiler()},
            {"cpu", processor_name()},
            {"instruction_set", std::string(name_of(active_isa()))},
            {"gpu", of_device(&DeviceDescription::name)},
            {"driver", of_device(&DeviceDescription::driver)},
            {"cuda_runtime", of_device(&DeviceDescription::runtime)},
            {"threads", thread_count()}};
  if (process_count() > 1) json["processes"] = process_count();
  return json;
}

}  // namespace halfscope
