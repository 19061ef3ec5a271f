// Opens a Runtime: directories, cgroups, device and system call filters, and the choice of the OCI
// runtime.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/storage_view.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime_state.h"
#include "noded/runtime/seccomp.h"

namespace gantry::runtime {

namespace {

// Finds a cgroup2 mount beside v1 that still has controllers: with such a mount crun 1.8 refuses
// every command.
std::string cgroup2_with_controllers() {
  const auto mounts = read_file("/proc/self/mountinfo").value_or("");
  if (mounts.find(" - cgroup ") == std::string::npos) return {};
  for (const auto& line : split(mounts, '\n')) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    const auto words = split(line, ' ');
    if (words.size() > 4 && !trim(read_file(words[4] + "/cgroup.controllers").value_or("")).empty())
      return words[4];
  }
  return {};
}

Result<void> add_source(const Fd& epoll, const Fd& source, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, source.get(), &event) != 0)
    return fail_errno(ErrorCode::internal, "epoll");
  return {};
}

Result<void> write_filter(const Fd& dir, const std::string& list, CallFilter which) {
  ASSIGN(filter, compile_seccomp(list, which));
  const FilterFiles& files = which == CallFilter::hardened ? kHardenedFilter : kFilter;
  TRY(write_whole(dir.get(), files.bpf, filter->bpf, Durability::none));
  TRY(write_whole(dir.get(), files.base64, filter->base64, Durability::none));
  return write_whole(dir.get(), files.json, filter->oci, Durability::none);
}

std::string find_program(const std::string& name) {
  if (name.starts_with("/")) return name;
  for (const char* dir :
       {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (::access((dir + name).c_str(), X_OK) == 0) return dir + name;
  return {};
}

using Stage = RecoveredAttempt::Stage;

constexpr Duration kPatience = seconds(10);

Result<LaunchRequest> read_request(const std::string& dir) {
  ASSIGN(bytes, read_file(dir + "/" + kLaunchFile));
  return codec::decode<LaunchRequest>(*bytes);
}

}  // namespace

Result<void> Runtime::State::prepare() {
  const auto& config = options.config;
  setup.node = options.node;
  setup.cluster = options.cluster;
  setup.state_dir = config.state_dir;
  setup.rootless = ::geteuid() != 0;
  setup.allow_root_jobs = config.allow_root_jobs;
  setup.writable_paths = config.writable_paths;
  setup.storage = config.storage;
  setup.stage_timeout = config.stage_timeout;
  setup.image_dirs = config.image_dirs;
  setup.image_cache_dir = config.image_cache_dir;
  setup.image_cache_size = config.image_cache_size;
  setup.image_size = config.image_size;
  setup.image_files = config.image_files;
  setup.image_check = config.image_check;
  setup.scratch_dir = options.scratch_dir;
  setup.shim_path = options.bin_dir + "/gantry-shim";
  setup.init_path = options.bin_dir + "/gantry-init";
  setup.notify_socket = config.state_dir + "/notify.sock";
  // A container's user ids must reach this directory, so no parent directory may be closed to
  // others.
  setup.mount_dir = setup.rootless ? config.state_dir + "/mnt" : "/run/gantry-mnt";
  if (setup.notify_socket.size() >= sizeof(sockaddr_un{}.sun_path))
    return fail(ErrorCode::invalid_argument,
                config.state_dir + ": the path is too long for a socket (at most 95 characters)");
  for (const std::string& path : setup.storage)
    if (auto r = check_storage_directory(path); !r && r.error().code != ErrorCode::not_found)
      return r;
  if (setup.rootless && !(config.prolog.empty() && config.epilog.empty()))
    return fail(ErrorCode::unsupported, "prolog and epilog need a node daemon that is root");
  remove_tree(gone_dir(setup.state_dir));
  for (const auto& path : {setup.state_dir, jobs_dir(setup.state_dir), gone_dir(setup.state_dir)})
    TRY(make_dirs(path, 0700));
  remember_home();
  TRY(make_dirs(setup.mount_dir, 0711));
  // The scratch directory may be the mount point of a separate disk.
  if (!setup.scratch_dir.empty()) TRY(make_dirs(setup.scratch_dir, 0711));
  for (const auto& program : {setup.shim_path, setup.init_path})
    if (::access(program.c_str(), X_OK) != 0) return fail_errno(ErrorCode::not_found, program);
  setup.cgroups = discover_cgroups(config.cgroup_root, options.node, probe.layers_off);
  setup.cgroups.device_majors = options.device_majors;
  setup.hide_cgroup2 = cgroup2_with_controllers();
  if (setup.cgroups.version != 0) {
    if (auto r = install_device_filter(setup.cgroups); !r)
      probe.layers_off.push_back("device filter: " + r.error().message);
    else
      probe.layers_on.emplace_back("device filter");
  } else {
    probe.layers_off.emplace_back("device filter: no cgroup may be made");
  }
  log.reset(::open((setup.state_dir + "/shim.log").c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  return {};
}

Result<void> Runtime::State::choose_runtime() {
  bool seccomp = false;
  const Fd dir(::open(setup.state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (const auto list = read_file(kSeccompList)) {
    for (const CallFilter which : {CallFilter::standard, CallFilter::hardened})
      TRY(write_filter(dir, *list, which));
    seccomp = true;
  }
  const auto use = [&]() -> Result<void> {
    return write_whole(dir.get(), kSetupFile, codec::encode(setup), Durability::none);
  };
  for (const auto& name : options.config.runtimes) {
    setup.runtime_path = find_program(name);
    if (name == "process") {
      setup.runtime = RuntimeKind::process;
      probe.runtime = "process";
      describe_layers(setup, seccomp, probe);
      describe_sandboxes(setup, false, probe);
      return use();
    }
    setup.runtime = name.find("runc") != std::string::npos ? RuntimeKind::runc : RuntimeKind::crun;
    const auto version = setup.runtime_path.empty() ? "" : runtime_version(setup.runtime_path);
    if (version.empty()) {
      probe.refused.push_back(name + ": not installed");
      continue;
    }
    if (setup.runtime == RuntimeKind::runc) allow_for_runc(setup.cgroups);
    TRY(use());
    if (options.self_test)
      if (auto r = try_container(setup); !r) {
        probe.refused.push_back(name + " " + version + ": " + r.error().message);
        continue;
      }
    probe.runtime = name + " " + version;
    find_kernels();
    TRY(use());
    describe_layers(setup, seccomp, probe);
    describe_sandboxes(setup, options.self_test, probe);
    return {};
  }
  std::string why = "no container runtime works on this node";
  for (const auto& refusal : probe.refused) why += "; " + refusal;
  return fail(ErrorCode::runtime_failed, why);
}

// The runtimes of sandboxes with their own kernel, if they are installed.
void Runtime::State::find_kernels() {
  const NodedConfig& config = options.config;
  if (!config.gvisor.empty() && config.gvisor != "none")
    setup.gvisor_path = find_program(config.gvisor);
  setup.vm_path = config.vm_runtime;
}

Result<void> Runtime::State::open_sources() {
  epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  notes.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!epoll || !timer || !notes) return fail_errno(ErrorCode::internal, "epoll");
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, setup.notify_socket.data(), setup.notify_socket.size());
  ::unlink(setup.notify_socket.c_str());
  if (::bind(notes.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    return fail_errno(ErrorCode::io_error, setup.notify_socket);
  TRY(add_source(epoll, notes, kNotesTag));
  return add_source(epoll, timer, kTimerTag);
}

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  auto& s = *state;
  TRY(s.prepare());
  TRY(s.choose_runtime());
  TRY(s.open_sources());
  s.shims = ShimTemplate(s.setup.shim_path, s.setup.state_dir, s.log.get());
  s.shims.start();
  s.boot_id = discover_node("").boot_id;
  const std::string path = s.setup.state_dir + "/boot_id";
  const auto before = read_file(path);
  s.rebooted = before && trim(*before) != s.boot_id;
  const Fd dir(::open(s.setup.state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY(write_whole(dir.get(), "boot_id", s.boot_id + "\n", Durability::durable));
  return std::unique_ptr<Runtime>(new Runtime(std::move(state)));
}

std::vector<StepId> Runtime::State::steps_on_disk(const AttemptKey& key) const {
  std::vector<StepId> steps;
  for (const auto& name : list_dir(dir(key) + "/steps"))
    steps.emplace_back(static_cast<std::uint32_t>(std::strtoul(name.c_str(), nullptr, 10)));
  return steps;
}

// Steps with a living shim are watched. No process of any other step may continue.
void Runtime::State::recover_steps(const AttemptKey& key, OneJob& job) {
  for (const StepId step : steps_on_disk(key)) {
    const std::string path = step_dir(setup.state_dir, key, step);
    if (exit_record(path)) continue;
    OneStep entry;
    if (find_shim(path, entry.shim) != ShimState::alive) {
      kill_cgroup(setup.cgroups, step_cgroup(key, step), kPatience);
      continue;
    }
    entry.running = true;
    watch(key, step, entry.shim);
    job.steps.insert_or_assign(step, std::move(entry));
  }
}

bool Runtime::State::epilog_over(const AttemptKey& key, OneJob& job) {
  if (!job.epilog_begun) {
    job.epilog_begun = true;
    const auto request = read_request(dir(key));
    if (!request || request->epilog.empty()) return true;
    auto process =
        start_process({setup.shim_path, "epilog", setup.state_dir, job_name(key)}, -1, log.get());
    if (!process) return true;  // a process cannot be started: the job's end must not wait for it
    job.epilog = std::move(*process);
  }
  if (job.epilog.pid == 0) return true;
  if (!reap_shim(job.epilog)) return false;
  job.epilog = {};
  return true;
}

// Ends the processes of a lost shim, and writes the exit record instead of it.
ExitRecord Runtime::State::bury_now(const AttemptKey& key, OneJob& job) {
  const auto usage = read_usage(setup.cgroups, job_cgroup(key));
  kill_cgroup(setup.cgroups, job_cgroup(key), kPatience);
  end_remains(key);
  remove_cgroup(setup.cgroups, job_cgroup(key), kPatience);
  while (!epilog_over(key, job)) {  // the epilog has a time limit of its own
    pollfd watched{job.epilog.pidfd.get(), POLLIN, 0};
    ::poll(&watched, 1, 1000);
  }
  remove_lost_scratch(key);
  auto record = lost_record(key);
  record.usage = usage;
  const Fd fd(::open(dir(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)write_whole(fd.get(), kExitFile, codec::encode(record), Durability::durable);
  return record;
}

RecoveredAttempt Runtime::State::recover_job(const AttemptKey& key, LaunchRequest request) {
  RecoveredAttempt one;
  one.key = key;
  one.request = std::move(request);
  OneJob job;
  job.owner = one.request.owner;
  job.has_network = one.request.parts.has_value();
  job.facts = facts_of(one.request);
  job.kind = one.request.kind;
  job.most_steps = most_steps(one.request);
  // Whether the shim lives must be checked first: a shim that is gone by then has written
  // everything that it will ever write.
  const auto state = find_shim(dir(key), job.shim);
  if (const auto running = running_record(key)) {
    if (running->started.us != 0) one.started = running->started;
    job.said_held = running->held;
    job.said_running = !running->held;
    if (!running->held) job.asleep_before = running->asleep;
  }
  if (auto record = exit_record(dir(key))) {
    one.stage = Stage::ended;
    one.record = std::move(*record);
  } else if (state == ShimState::alive) {
    one.stage = job.said_held ? Stage::held : job.said_running ? Stage::running : Stage::preparing;
  } else if (state == ShimState::never_ran && !rebooted) {
    one.stage = Stage::never_started;
    return one;
  } else {
    one.stage = Stage::ended;
    one.record = bury_now(key, job);
  }
  job.ended = one.stage == Stage::ended;
  one.frozen = one.stage == Stage::running && is_frozen(setup.cgroups, job_cgroup(key));
  if (state == ShimState::alive) watch(key, std::nullopt, job.shim);
  recover_steps(key, job);
  jobs.insert_or_assign(key, std::move(job));
  return one;
}

std::vector<RecoveredAttempt> Runtime::recover() {
  auto& s = *state_;
  std::vector<RecoveredAttempt> found;
  std::vector<std::string> known;
  for (const auto& name : list_dir(jobs_dir(s.setup.state_dir))) {
    const auto key = parse_job_name(name);
    if (!key) continue;
    if (key->job == JobId{}) {  // an interrupted self-test; its cgroup is removed below
      remove_tree(s.dir(*key));
      continue;
    }
    auto request = read_request(s.dir(*key));
    if (!request) {  // noded died while writing the record, so the job never ran
      remove_tree(s.dir(*key));
      continue;
    }
    known.push_back(job_cgroup(*key));
    found.push_back(s.recover_job(*key, std::move(*request)));
  }
  for (const auto& name : list_cgroups(s.setup.cgroups)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    kill_cgroup(s.setup.cgroups, name, kPatience);
    remove_cgroup(s.setup.cgroups, name, kPatience);
  }
  s.rebooted = false;
  return found;
}

}  // namespace gantry::runtime
