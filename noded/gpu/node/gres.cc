#include "noded/gpu/node/gres.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "config/gres.h"
#include "noded/machine/files.h"

namespace gantry::node {
namespace {

constexpr int kCommandMillis = 30'000;
constexpr std::size_t kMostCommandOutput = 1 << 20;  // bytes
// Majors of the kernel's own devices (memory, terminals), some of which every job has.
constexpr std::uint32_t kMemoryMajor = 1, kTerminalMajor = 5;

// Returns the program's output; the program must succeed and end in time.
Result<std::string> output_of(const std::string& program) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return runtime::fail_errno(ErrorCode::io_error, "pipe");
  const Fd read(pipe[0]);
  Fd write(pipe[1]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write.get(), 1);
  std::string name = program, path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin";
  char* argv[] = {name.data(), nullptr};
  char* env[] = {path.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), &files, nullptr, argv, env);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return fail(ErrorCode::unavailable, runtime::errno_text(program, error));
  write.reset();
  std::string out;
  bool in_time = true;
  for (char buffer[4096];;) {
    pollfd poll{read.get(), POLLIN, 0};
    in_time = ::poll(&poll, 1, kCommandMillis) == 1 && out.size() <= kMostCommandOutput;
    const ssize_t n = in_time ? ::read(read.get(), buffer, sizeof buffer) : 0;
    if (n <= 0) break;
    out.append(buffer, static_cast<std::size_t>(n));
  }
  if (!in_time) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!in_time)
    return fail(ErrorCode::timed_out,
                fmt::format("{} is silent for {} s, or prints more than {} bytes", program,
                            kCommandMillis / 1000, kMostCommandOutput));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorCode::unavailable, program + " failed");
  return out;
}

std::vector<gpu::GenericResource> discovered(const std::string& program, const Logger& log) {
  if (program.empty()) return {};
  const auto text = output_of(program);
  auto found = text ? gpu::parse_discovered(*text, program)
                    : Result<std::vector<gpu::GenericResource>>(tl::unexpected(text.error()));
  if (found) return std::move(*found);
  log.error("no resources are discovered", {{"why", found.error().message}});
  return {};
}

// Sets a variable. If several devices have the same one, their values are joined.
void set_variable(runtime::LaunchRequest& request, std::set<std::string>& own,
                  const std::string& name, const std::string& value) {
  std::string& text = request.env[name];
  text = own.insert(name).second ? value : text + "," + value;
}

// Makes GANTRY_GRES_SIM_LICENSE from the name sim-license.
std::string variable_of(const std::string& name) {
  std::string out = "GANTRY_GRES_";
  for (const char c : name)
    out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == '-' ? '_' : c;
  return out;
}

}  // namespace

Gres::Gres(const NodedConfig& config, const NodeConfig& node, const Logger& log) {
  std::string root = config.gpu_root;
  if (const auto at = root.find("%n"); at != std::string::npos) root.replace(at, 2, node.name);
  if (root != "/") roots_ = {root + "/dev", root + "/proc", root + "/sys"};
  const auto declared = declared_gres(node);
  const auto found =
      declared.empty() ? std::vector<gpu::GenericResource>() : discovered(config.gres_command, log);
  for (const DeclaredGres& d : declared) {
    gpu::GenericResource resource;
    resource.name = d.name;
    resource.count = d.files.empty() ? d.count : 0;
    for (const std::string& file : d.files) resource.devices.push_back({"", {file}, {}, -1});
    const auto of_command =
        std::ranges::find_if(found, [&](const auto& f) { return f.name == d.name; });
    if (d.files.empty() && of_command != found.end()) resource = *of_command;
    add(d.name, resource, d.count, log);
  }
}

void Gres::add(const std::string& name, const gpu::GenericResource& resource, std::uint32_t most,
               const Logger& log) {
  Resource& out = resources_[name];
  const auto whole = gpu::complete(resource);
  if (!whole) return log.error("a resource cannot be had", {{"why", whole.error().message}});
  for (const gpu::GenericDevice& device : whole->devices) {
    if (out.devices.size() == most) break;
    auto files = gpu::device_files(device, roots_);
    const bool common = files && std::ranges::any_of(*files, [](const auto& f) {
                          return f.major == kMemoryMajor || f.major == kTerminalMajor;
                        });
    if (!files || common) {
      log.error("a resource cannot be had",
                {{"name", name},
                 {"device", device.id},
                 {"why", files ? "every job has files of this kind" : files.error().message}});
      continue;
    }
    out.devices.push_back({device, std::move(*files)});
  }
  out.count = whole->devices.empty() ? std::min(whole->count, most)
                                     : static_cast<std::uint32_t>(out.devices.size());
}

std::vector<GresCount> Gres::counts() const {
  std::vector<GresCount> out;
  for (const auto& [name, resource] : resources_)
    if (resource.count > 0) out.push_back({name, resource.count});
  return out;
}

std::vector<std::uint32_t> Gres::majors() const {
  std::set<std::uint32_t> out;
  for (const auto& [name, resource] : resources_)
    for (const Device& device : resource.devices)
      for (const gpu::DeviceFile& file : device.files) out.insert(file.major);
  return {out.begin(), out.end()};
}

Result<void> Gres::prepare(const std::vector<GresGrant>& grants,
                           runtime::LaunchRequest& request) const {
  std::erase_if(request.env, [](const auto& e) { return e.first.starts_with("GANTRY_GRES_"); });
  std::set<std::string> own;
  for (const GresGrant& grant : grants) {
    const auto found = resources_.find(grant.name);
    std::vector<std::string> ids;
    for (const std::uint16_t place : grant.devices) {
      if (found == resources_.end() || place >= found->second.count)
        return fail(ErrorCode::unavailable, fmt::format("{} {} is not there", grant.name, place));
      if (found->second.devices.empty()) {
        ids.push_back(std::to_string(place));
        continue;
      }
      const Device& device = found->second.devices[place];
      ids.push_back(device.declared.id);
      for (const gpu::DeviceFile& f : device.files)
        request.devices.push_back(
            {f.path, roots_.dev + f.path.substr(4), f.major, f.minor, f.permissions});
      for (const auto& [name, value] : device.declared.env) set_variable(request, own, name, value);
    }
    request.state(variable_of(grant.name), fmt::format("{}", fmt::join(ids, ",")));
  }
  return {};
}

}  // namespace gantry::node
