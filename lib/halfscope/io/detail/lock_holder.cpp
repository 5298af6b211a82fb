// Reads what /proc and Slurm say of processes.
#include <halfscope/io/detail/lock_holder.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

/// The first line of a file; empty where there is none.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Containers on one machine number their processes apart.
std::string machine_id() {
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const std::string numbering = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return boot.empty() || numbering.empty() ? "" : boot + " " + numbering;
}

/// Field `number`, from 3 on, of /proc/PID/stat, counted behind the name, which may hold anything; empty
/// where nothing says so.
std::string stat_field(std::int64_t process, int number) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", process).c_str());
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) fields >> field;
  return field;
}

/// Field 22: clock ticks since the machine started; 0 where nothing says so.
std::int64_t start_of(std::int64_t process) {
  return std::strtoll(stat_field(process, 22).c_str(), nullptr, 10);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

bool has_ended(const LockHolder& holder) {
  if (::kill(static_cast<pid_t>(holder.process), 0) != 0) return errno == ESRCH;
  const std::string state = stat_field(holder.process, 3);
  if (state == "Z" || state == "X") return true;  // killed, and nobody has asked for its end yet
  const std::int64_t started = start_of(holder.process);
  return holder.started != 0 && started != 0 && holder.started != started;
}

}  // namespace

LockHolder this_holder() {
  return {.token = new_token(),
          .host = host_name(),
          .machine = machine_id(),
          .process = ::getpid(),
          .started = start_of(::getpid()),
          .job = variable("SLURM_JOB_ID"),
          .restarts = std::strtoll(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10)};
}

std::string to_text(const LockHolder& holder) {
  return to_line({{"token", holder.token},
                  {"host", holder.host},
                  {"machine", holder.machine},
                  {"process", holder.process},
                  {"started", holder.started},
                  {"job", holder.job},
                  {"restarts", holder.restarts}}) +
         "\n";
}

std::optional<LockHolder> parse_holder(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return LockHolder{.token = json.at("token"),
                      .host = json.at("host"),
                      .machine = json.at("machine"),
                      .process = json.at("process"),
                      .started = json.at("started"),
                      .job = json.at("job"),
                      .restarts = json.at("restarts")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string describe(const LockHolder& holder) {
  const std::string job = holder.job.empty() ? "" : fmt::format(", job {}", escaped(holder.job));
  return fmt::format("process {} on {}{}", holder.process, escaped(holder.host), job);
}

bool is_gone(const LockHolder& holder, const LockHolder& ours) {
  if (!holder.job.empty() && holder.job == ours.job && holder.restarts < ours.restarts) return true;
  const bool same_machine = !holder.machine.empty() && holder.machine == ours.machine;
  return same_machine && holder.process > 0 && has_ended(holder);
}

}  // namespace halfscope
