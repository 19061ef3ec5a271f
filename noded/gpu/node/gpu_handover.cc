#include "noded/gpu/node/gpu_handover.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "noded/machine/files.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

constexpr int kNoLibrary = 3;  // exit status of gantry-gpu-scrub
// Exit status of the site's program: not only this device is broken.
constexpr int kNodeUnwell = 2;

std::string why_of(const CommandEnd& end, Duration limit) {
  if (!end.in_time) return fmt::format("not done after {} s", limit.seconds());
  if (!end.last_line.empty()) return end.last_line;
  if (end.status.signal != 0) return fmt::format("killed by signal {}", end.status.signal);
  return fmt::format("exit status {}", end.status.code);
}

std::string_view name_of(HandoverWhen when) {
  switch (when) {
    case HandoverWhen::before: return "before";
    case HandoverWhen::after: return "after";
    case HandoverWhen::repair: break;
  }
  return "repair";
}

}  // namespace

bool mended_by_handover(const GpuFault& fault) {
  return fault.cause.starts_with(kNotIdle) || fault.cause.starts_with(kNotScrubbed) ||
         fault.cause.starts_with(kProbeFailed);
}

struct GpuHandover::Case {
  HandoverWhen when = HandoverWhen::before;
  std::vector<HandedDevice> devices;
  std::vector<std::string> env;
  std::function<void(Outcome&&)> done;
  Outcome outcome;
  Duration waited{};
  std::size_t open = 0;  // number of commands that still run
  loop::Watch timer;
};

GpuHandover::GpuHandover(Options options, loop::Loop& loop, Look look)
    : options_(std::move(options)), loop_(loop), look_(std::move(look)), commands_(loop) {}

GpuHandover::~GpuHandover() {
  for (const auto& one : cases_) one->timer.cancel();
}

void GpuHandover::run(HandoverWhen when, std::vector<HandedDevice> devices,
                      std::vector<std::string> env, std::function<void(Outcome&&)> done) {
  auto one = std::make_shared<Case>();
  one->when = when;
  one->devices = std::move(devices);
  one->env = std::move(env);
  one->done = std::move(done);
  for (const HandedDevice& device : one->devices)
    one->outcome.gpus.push_back({device.uuid, device.gpu, GpuScrub::not_needed, {}});
  cases_.push_back(one);
  look(one);
}

bool GpuHandover::busy(std::uint32_t gpu, bool slice) const {
  return std::ranges::any_of(cases_, [&](const auto& one) {
    if (slice && one->when == HandoverWhen::before) return false;
    return std::ranges::any_of(one->devices, [&](const HandedDevice& d) { return d.gpu == gpu; });
  });
}

void GpuHandover::add_fault(Case& one, std::size_t device, std::string cause, FaultDomain domain) {
  const HandedDevice& d = one.devices[device];
  GpuFault fault{domain, std::move(cause), d.gpu_instance.value_or(0), runtime::wall_clock()};
  if (domain == FaultDomain::gpu && d.gpu_instance) fault.domain = FaultDomain::slice;
  if (fault.domain != FaultDomain::slice) fault.gpu_instance = 0;
  one.outcome.faults.push_back({d.gpu_uuid, std::move(fault)});
}

// ---- is the device idle?

void GpuHandover::look(const std::shared_ptr<Case>& one) {
  look_(one->devices, [this, weak = std::weak_ptr(one)](std::vector<Seen>&& found) {
    if (const auto still = weak.lock()) looked(still, std::move(found));
  });
}

void GpuHandover::looked(const std::shared_ptr<Case>& one, std::vector<Seen>&& found) {
  found.resize(one->devices.size());
  const bool idle = std::ranges::all_of(found, [](auto& s) { return s.left.empty(); });
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].fault)
      one->outcome.faults.push_back({one->devices[i].gpu_uuid, std::move(*found[i].fault)});
  if (!one->outcome.faults.empty()) return finish(one);
  if (!idle && one->waited < options_.patience) {
    one->waited = one->waited + options_.pause;
    one->timer = loop_.after(options_.pause, [this, one] { look(one); });
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].left.empty())
      add_fault(*one, i, fmt::format("{} {}", kNotIdle, found[i].left), FaultDomain::gpu);
  if (!idle) return finish(one);
  scrub(one);
}

// ---- memory

void GpuHandover::scrub(const std::shared_ptr<Case>& one) {
  for (std::size_t i = 0; i < one->devices.size(); ++i) {
    if (!one->devices[i].scrub) continue;
    if (options_.scrubbing == GpuScrubbing::off) {
      one->outcome.gpus[i].scrub = GpuScrub::off;
      continue;
    }
    ++one->open;
    commands_.run({options_.scrub_program, options_.cuda_library, one->devices[i].uuid}, {},
                  options_.scrub_limit, [this, one, i](const CommandEnd& end) {
                    scrubbed(*one, i, end);
                    if (--one->open == 0) probe(one);
                  });
  }
  if (one->open == 0) probe(one);
}

void GpuHandover::scrubbed(Case& one, std::size_t device, const CommandEnd& end) {
  runtime::LaunchGpu& out = one.outcome.gpus[device];
  const bool no_library = end.in_time && end.status.signal == 0 && end.status.code == kNoLibrary;
  out.scrub = end.good() ? GpuScrub::done : GpuScrub::not_possible;
  out.note = why_of(end, options_.scrub_limit);
  if (end.good() || (no_library && options_.scrubbing == GpuScrubbing::when_possible)) return;
  add_fault(one, device, fmt::format("{} {}", kNotScrubbed, out.note), FaultDomain::gpu);
}

// ---- the site's own program

void GpuHandover::probe(const std::shared_ptr<Case>& one) {
  if (options_.probe_program.empty() || !one->outcome.faults.empty()) return finish(one);
  for (std::size_t i = 0; i < one->devices.size(); ++i) {
    const HandedDevice& device = one->devices[i];
    std::vector<std::string> env = one->env;
    env.push_back(fmt::format("GANTRY_PROBE={}", name_of(one->when)));
    env.push_back(fmt::format("GANTRY_GPU={}", device.gpu));
    env.push_back("GANTRY_GPU_UUID=" + device.uuid);
    env.push_back("CUDA_VISIBLE_DEVICES=" + device.uuid);
    ++one->open;
    commands_.run({options_.probe_program}, std::move(env), options_.probe_limit,
                  [this, one, i](const CommandEnd& end) {
                    const bool node = end.in_time && end.status.code == kNodeUnwell;
                    if (!end.good())
                      add_fault(
                          *one, i,
                          fmt::format("{} {}", kProbeFailed, why_of(end, options_.probe_limit)),
                          node ? FaultDomain::node : FaultDomain::gpu);
                    if (--one->open == 0) finish(one);
                  });
  }
  if (one->open == 0) finish(one);
}

void GpuHandover::finish(const std::shared_ptr<Case>& one) {
  std::erase(cases_, one);
  one->timer.cancel();
  one->done(std::move(one->outcome));
}

GpuHolders::GpuHolders(const Options& options, const Logger& log)
    : log_(log), sharing_(options.sharing), mps_(options.mps_control, options.mps_dir) {
  if (sharing_ != GpuSharing::mps) return;
  cannot_share_ = mps_.why_not();
  if (!options.containers) cannot_share_ = "MPS needs jobs in containers (noded.runtimes)";
  if (!cannot_share_.empty())
    log_.warning("GPUs of this node are not shared", {{"why", cannot_share_}});
}

Result<void> GpuHolders::take(const AttemptKey& key, const Device& device, DevicePart part,
                              runtime::LaunchRequest& request) {
  const bool shared = part < kWholeDevice;
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::wrong_state, fmt::format("{} {}", device.name, why));
  };
  if (shared && (sharing_ == GpuSharing::none || !cannot_share_.empty()))
    return refuse("is not shared on this node");
  DevicePart sum = part;
  for (const Holder& h : holders_) {
    if (h.uuid != device.uuid || h.key == key) continue;
    if (!shared || h.part == kWholeDevice)
      return refuse(fmt::format("is held by job {}", h.key.job.value()));
    if (h.tenant != request.sharing.tenant) return refuse("is shared by another tenant");
    sum += h.part;
  }
  if (sum > kWholeDevice) return refuse("has less of it left");
  if (shared) {
    request.sharing.part = part.narrow<std::uint32_t>();
    request.state("GANTRY_GPU_SHARE", fmt::format("{}.{:03}", 0, part.value()));
  }
  if (shared && sharing_ == GpuSharing::mps) {
    ASSIGN(paths, mps_.serve(request.sharing.tenant, device.uuid));
    for (const auto& [name, value] : gpu::mps_variables(part, device.memory))
      request.env[name] = value;
    request.sharing.binds.push_back({gpu::kMpsInJob, paths->pipe});
    request.sharing.binds.push_back({"/dev/shm", paths->shm});
  }
  holders_.push_back({key, device.uuid, request.sharing.tenant, part});
  return {};
}

bool GpuHolders::alone(const AttemptKey& key, const std::string& uuid) const {
  return std::ranges::none_of(holders_,
                              [&](const Holder& h) { return h.uuid == uuid && h.key != key; });
}

void GpuHolders::recovered(const AttemptKey& key, const std::string& uuid,
                           const runtime::LaunchSharing& sharing) {
  holders_.push_back({key, uuid, sharing.tenant,
                      sharing.part > DevicePart{} ? DevicePart{sharing.part} : kWholeDevice});
}

void GpuHolders::released(const AttemptKey& key) {
  const bool had_part = std::ranges::any_of(
      holders_, [&](const Holder& h) { return h.key == key && h.part < kWholeDevice; });
  std::erase_if(holders_, [&](const Holder& h) { return h.key == key; });
  if (had_part) settle();
}

void GpuHolders::settle() {
  if (sharing_ == GpuSharing::none) return;
  std::map<std::string, std::string> wanted;
  for (const Holder& h : holders_)
    if (h.part < kWholeDevice) wanted[h.uuid] = h.tenant;
  for (const std::string& what : mps_.keep(wanted)) log_.info(what);
}

namespace {

constexpr std::size_t kMostOutput = 64u << 10;  // bytes

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

struct Commands::Running {
  pid_t pid = 0;
  Fd output;
  std::string text;
  CommandEnd end;
  std::function<void(const CommandEnd&)> done;
  loop::Watch reading, ending, limit;
};

Commands::Commands(loop::Loop& loop) : loop_(loop) {}

Commands::~Commands() {
  for (auto& [id, one] : running_)
    if (one->pid > 0) ::kill(-one->pid, SIGKILL);
}

void Commands::run(std::vector<std::string> argv, std::vector<std::string> env, Duration limit,
                   std::function<void(const CommandEnd&)> done) {
  const std::uint64_t id = ++last_;
  Running& one = *(running_[id] = std::make_unique<Running>());
  one.done = std::move(done);
  start(one, argv, env);
  if (one.pid > 0) {
    one.reading = loop_.on_readable(one.output.get(), [this, id] { read(id); });
    auto ending = loop_.on_process_end(one.pid, [this, id](loop::ProcessEnd end) {
      ended(id, end.status.value_or(ExitStatus{}));
    });
    if (ending) {
      one.ending = std::move(*ending);
      one.limit = loop_.after(limit, [&one] {
        one.end.in_time = false;
        ::kill(-one.pid, SIGKILL);
      });
      return;
    }
    one.text = ending.error().message;
    ::kill(-one.pid, SIGKILL);
    one.pid = 0;
  }
  one.limit = loop_.after(Duration{}, [this, id] { ended(id, ExitStatus{127, 0}); });
}

void Commands::start(Running& one, std::vector<std::string>& argv, std::vector<std::string>& env) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return void(one.text = runtime::errno_text("pipe"));
  one.output.reset(ends[0]);
  const Fd write(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  env.insert(env.begin(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write.get(), 1);
  posix_spawn_file_actions_adddup2(&files, write.get(), 2);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&one.pid, argv.front().c_str(), &files, &attributes,
                                  pointers(argv).data(), pointers(env).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return;
  one.pid = 0;
  one.text = runtime::errno_text(argv.front(), error);
}

void Commands::read(std::uint64_t id) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  Running& one = *at->second;
  for (char buffer[4096];;) {
    const ssize_t n = ::read(one.output.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return one.reading.cancel();
    if (one.text.size() < kMostOutput) one.text.append(buffer, static_cast<std::size_t>(n));
  }
}

void Commands::ended(std::uint64_t id, ExitStatus status) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  if (at->second->pid > 0) {
    read(id);                           // reads the rest from the pipe
    ::kill(-at->second->pid, SIGKILL);  // ends processes that the program left behind
  }
  const std::unique_ptr<Running> one = std::move(at->second);
  running_.erase(at);
  one->end.status = status;
  one->end.last_line = last_line(one->text);
  one->done(one->end);
}

}  // namespace gantry::node
