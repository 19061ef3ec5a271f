#include "noded/shim/rootfs/oci_config.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "noded/machine/files.h"
#include "noded/shim/mounts.h"

namespace gantry::runtime {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr std::uint32_t kIds = 65536;

void text(Writer& w, std::string_view value) {
  w.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}
void key(Writer& w, std::string_view name) {
  w.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
}
void pair(Writer& w, std::string_view name, std::string_view value) {
  key(w, name);
  text(w, value);
}
template <class Number>
void number(Writer& w, std::string_view name, Number value) {
  key(w, name);
  w.Uint64(static_cast<std::uint64_t>(value));
}
void flag(Writer& w, std::string_view name, bool value) {
  key(w, name);
  w.Bool(value);
}
template <class Fill>
void object(Writer& w, const Fill& fill) {
  w.StartObject();
  fill();
  w.EndObject();
}
template <class Fill>
void object(Writer& w, std::string_view name, const Fill& fill) {
  key(w, name);
  object(w, fill);
}
template <class Fill>
void list(Writer& w, std::string_view name, const Fill& fill) {
  key(w, name);
  w.StartArray();
  fill();
  w.EndArray();
}
// A list with an object for each value.
template <class Range, class Fill>
void objects(Writer& w, std::string_view name, const Range& values, const Fill& fill) {
  list(w, name, [&] {
    for (const auto& value : values) object(w, [&] { fill(value); });
  });
}
template <class Range>
void texts(Writer& w, std::string_view name, const Range& values) {
  list(w, name, [&] {
    for (const auto& v : values) text(w, v);
  });
}

void limits(Writer& w, const ProcessLimits& asked, Sandbox level) {
  objects(w, "rlimits", job_limits(asked, level), [&](const JobLimit& limit) {
    pair(w, "type", limit.name);
    number(w, "soft", limit.soft);
    number(w, "hard", limit.hard);
  });
}

// The first process of the container.
struct OciProcess {
  std::vector<std::string> args, env;
  std::string cwd;
  const ProcessLimits* limits = nullptr;  // nullptr: the runtime is started with the limits
};

int score_of_oom() {
  constexpr int kJobs = 500;  // the kernel kills jobs before the daemons of the node
  const auto own = read_file("/proc/self/oom_score_adj");
  return own ? std::max(kJobs, std::atoi(own->c_str())) : kJobs;
}

void process(Writer& w, const NodeSetup& setup, const LaunchRequest& request,
             const OciProcess& what) {
  flag(w, "terminal", false);
  object(w, "user", [&] {
    number(w, "uid", request.owner.uid.value());
    number(w, "gid", request.owner.gid.value());
    if (request.limits.umask) number(w, "umask", *request.limits.umask);
    if (setup.rootless || (request.owner.groups.empty() && request.device_gids.empty())) return;
    list(w, "additionalGids", [&] {
      for (const auto g : request.owner.groups) w.Uint(g.value());
      for (const auto g : request.device_gids) w.Uint(g);
    });
  });
  texts(w, "args", what.args);
  texts(w, "env", what.env);
  pair(w, "cwd", what.cwd);
  flag(w, "noNewPrivileges", true);
  object(w, "capabilities", [&] {
    for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
      texts(w, set, std::array<std::string_view, 0>{});
  });
  if (!setup.rootless && what.limits != nullptr) limits(w, *what.limits, request.sandbox);
  key(w, "oomScoreAdj");
  w.Int(score_of_oom());
}

template <class Options = std::initializer_list<std::string_view>>
void mount(Writer& w, std::string_view target, std::string_view type, std::string_view source,
           const Options& options) {
  object(w, [&] {
    pair(w, "destination", target);
    pair(w, "type", type);
    pair(w, "source", source);
    texts(w, "options", options);
  });
}

// A mount from a CDI specification. It gets no more rights than specified there; devices and
// set-uid programs never work in it.
void driver_mount(Writer& w, const LaunchMount& m) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(m.options, word) != m.options.end();
  };
  const bool bind = m.type.empty() || m.type == "none" || m.type == "bind";
  std::vector<std::string_view> options(m.options.begin(), m.options.end());
  if (bind && !has("bind") && !has("rbind")) options.emplace_back("rbind");
  for (const std::string_view word : {"nosuid", "nodev"})
    if (!has(word)) options.push_back(word);
  mount(w, m.path, bind ? "bind" : std::string_view(m.type), m.source, options);
}

void hooks(Writer& w, const LaunchRequest& request) {
  if (request.hooks.empty()) return;
  constexpr std::array<std::string_view, 6> kStages{
      "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
  object(w, "hooks", [&] {
    for (const std::string_view stage : kStages) {
      std::vector<LaunchHook> here;
      std::ranges::copy_if(request.hooks, std::back_inserter(here),
                           [&](const LaunchHook& hook) { return hook.stage == stage; });
      objects(w, stage, here, [&](const LaunchHook& hook) {
        pair(w, "path", hook.path);
        texts(w, "args", hook.args);
        texts(w, "env", hook.env);
        if (hook.timeout_s) number(w, "timeout", *hook.timeout_s);
      });
    }
  });
}

void mounts(Writer& w, const NodeSetup& setup, const LaunchRequest& request) {
  mount(w, "/proc", "proc", "proc", {"nosuid", "noexec", "nodev"});
  mount(w, "/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=1m"});
  mount(w, "/dev/pts", "devpts", "devpts",
        {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"});
  const std::int64_t bytes = request.memory > 0 ? request.memory / 2 : std::int64_t{64} << 20;
  const std::string size = "size=" + std::to_string(bytes);
  const std::string files = "nr_inodes=" + std::to_string(tmpfs_files(bytes));
  if (has_own_kernel(request.sandbox))
    mount(w, "/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", size});
  else
    mount(w, "/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", size, files});
  if (!has_own_kernel(request.sandbox))
    mount(w, "/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"});
  if (!request.network_sys.empty() && !has_own_kernel(request.sandbox))
    mount(w, "/sys", "none", request.network_sys,
          {"bind", "nosuid", "noexec", "nodev", "ro", "rprivate"});
  else if (request.network != NetworkMode::host)
    mount(w, "/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"});
  else  // a new sysfs would need its own network namespace
    mount(w, "/sys", "none", "/sys", {"rbind", "nosuid", "noexec", "nodev", "ro", "rprivate"});
  for (const LaunchDevice& d : request.devices)
    mount(w, d.path, "bind", d.source, {"bind", "nosuid", "noexec"});
  for (const LaunchBind& b : request.sharing.binds)
    mount(w, b.path, "bind", b.source, {"bind", "nosuid", "nodev", "noexec", "rw"});
  for (const LaunchMount& m : request.mounts) driver_mount(w, m);
  mount(w, kInitInside, "bind", setup.init_path, {"bind", "ro", "nosuid", "nodev"});
}

void mappings(Writer& w, std::string_view name, const std::vector<IdRange>& ranges) {
  objects(w, name, ranges, [&](const IdRange& r) {
    number(w, "containerID", r.inside);
    number(w, "hostID", r.outside);
    number(w, "size", r.count);
  });
}

void namespaces(Writer& w, const NodeSetup& setup, const LaunchRequest& request,
                const std::string& user_namespace) {
  const auto add = [&](std::string_view type, std::string_view path = {}) {
    object(w, [&] {
      pair(w, "type", type);
      if (!path.empty()) pair(w, "path", path);
    });
  };
  list(w, "namespaces", [&] {
    for (const char* type : {"pid", "mount", "ipc", "uts", "cgroup"}) add(type);
    // Without a path the namespace is a new one, with loopback alone: only the host's network is
    // shared, and only if the job has asked for it.
    if (request.network != NetworkMode::host) add("network", request.network_space);
    if (setup.user_namespace) add("user", user_namespace);
  });
  if (!setup.user_namespace) return;
  if (setup.rootless) {
    mappings(w, "uidMappings", {{request.owner.uid.value(), request.owner.uid.value(), 1}});
    mappings(w, "gidMappings", {{request.owner.gid.value(), request.owner.gid.value(), 1}});
    return;
  }
  const IdMappings ids = mappings_of(setup, request);
  mappings(w, "uidMappings", ids.uids);
  mappings(w, "gidMappings", ids.gids);
}

void allowed_devices(Writer& w, const LaunchRequest& request) {
  if (request.devices.empty()) return;
  object(w, "resources", [&] {
    objects(w, "devices", request.devices, [&](const LaunchDevice& d) {
      flag(w, "allow", true);
      pair(w, "type", "c");
      number(w, "major", d.major);
      number(w, "minor", d.minor);
      pair(w, "access", d.access);
    });
  });
}

// Paths that a job sees empty. One that does not exist is skipped.
std::vector<std::string_view> masked_paths(const LaunchRequest& request) {
  std::vector<std::string_view> out{"/proc/acpi",          "/proc/asound",
                                    "/proc/kcore",         "/proc/keys",
                                    "/proc/latency_stats", "/proc/timer_list",
                                    "/proc/timer_stats",   "/proc/sched_debug",
                                    "/proc/scsi",          "/proc/interrupts",
                                    "/sys/firmware",       "/sys/fs/selinux",
                                    "/sys/dev/block",      "/sys/devices/virtual/powercap"};
  if (request.sandbox != Sandbox::hardened) return out;
  // Information about the machine, its kernel and its other users that usual programs do not need.
  for (const std::string_view path :
       {"/proc/buddyinfo",   "/proc/config.gz",    "/proc/consoles",   "/proc/crypto",
        "/proc/diskstats",   "/proc/dma",          "/proc/iomem",      "/proc/ioports",
        "/proc/kallsyms",    "/proc/key-users",    "/proc/kmsg",       "/proc/kpagecgroup",
        "/proc/kpagecount",  "/proc/kpageflags",   "/proc/locks",      "/proc/modules",
        "/proc/mtrr",        "/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure",
        "/proc/schedstat",   "/proc/slabinfo",     "/proc/softirqs",   "/proc/swaps",
        "/proc/vmallocinfo", "/proc/vmstat",       "/proc/zoneinfo",   "/sys/fs",
        "/sys/hypervisor",   "/sys/kernel",        "/sys/module",      "/sys/power"})
    out.push_back(path);
  // The libraries of devices read these.
  if (request.devices.empty())
    for (const std::string_view path :
         {"/proc/driver", "/sys/block", "/sys/bus", "/sys/class", "/sys/dev"})
      out.push_back(path);
  return out;
}

void linux_part(Writer& w, const NodeSetup& setup, const LaunchRequest& request,
                const OciInput& input) {
  constexpr std::array<std::string_view, 5> kReadOnly{"/proc/bus", "/proc/fs", "/proc/irq",
                                                      "/proc/sys", "/proc/sysrq-trigger"};
  namespaces(w, setup, request, input.user_namespace);
  texts(w, "maskedPaths", masked_paths(request));
  texts(w, "readonlyPaths", kReadOnly);
  pair(w, "rootfsPropagation", "private");
  if (!input.cgroups_path.empty()) {  // only for a runtime that writes device rules of its own
    pair(w, "cgroupsPath", input.cgroups_path);
    allowed_devices(w, request);
  }
  if (setup.runtime == RuntimeKind::crun && !input.seccomp_bpf.empty()) {
    // crun heeds the annotation only if this is there.
    object(w, "seccomp", [&] { pair(w, "defaultAction", "SCMP_ACT_ERRNO"); });
  } else if (!input.seccomp_json.empty()) {
    key(w, "seccomp");
    w.RawValue(input.seccomp_json.data(), input.seccomp_json.size(), rapidjson::kObjectType);
  }
}

}  // namespace

std::vector<IdRange> keep_mapping(std::vector<std::uint32_t> own, std::uint32_t base) {
  std::ranges::sort(own);
  own.erase(std::unique(own.begin(), own.end()), own.end());
  std::vector<IdRange> ranges;
  std::uint32_t next = 0;
  for (const auto id : own) {
    if (next < kIds && id > next) {
      const auto count = std::min(id, kIds) - next;
      ranges.push_back({next, base + next, count});
    }
    ranges.push_back({id, id, 1});
    next = std::max(next, id < kIds ? id + 1 : kIds);
  }
  if (next < kIds) ranges.push_back({next, base + next, kIds - next});
  return ranges;
}

IdMappings mappings_of(const NodeSetup& setup, const LaunchRequest& request) {
  std::vector<std::uint32_t> gids{request.owner.gid.value()};
  for (const auto g : request.owner.groups) gids.push_back(g.value());
  gids.insert(gids.end(), request.device_gids.begin(), request.device_gids.end());
  return {keep_mapping({request.owner.uid.value()}, setup.subid_base),
          keep_mapping(std::move(gids), setup.subid_base)};
}

namespace {

// The name of the limit in an OCI configuration; "" = it cannot be set there.
std::string_view oci_name(LimitName name) {
  switch (name) {
    case LimitName::address_space: return "RLIMIT_AS";
    case LimitName::core: return "RLIMIT_CORE";
    case LimitName::cpu_seconds: return "RLIMIT_CPU";
    case LimitName::data: return "RLIMIT_DATA";
    case LimitName::file_size: return "RLIMIT_FSIZE";
    case LimitName::locked_memory: return "RLIMIT_MEMLOCK";
    case LimitName::open_files: return "RLIMIT_NOFILE";
    case LimitName::processes: return "RLIMIT_NPROC";
    case LimitName::resident_set: return "RLIMIT_RSS";
    case LimitName::stack: return "RLIMIT_STACK";
  }
  return "";
}

}  // namespace

std::vector<JobLimit> job_limits(const ProcessLimits& asked, Sandbox level) {
  constexpr std::uint64_t kMax = RLIM_INFINITY;
  std::vector<JobLimit> wanted{{"RLIMIT_NOFILE", RLIMIT_NOFILE, kJobFiles, 1048576},
                               {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, 16384, 16384},
                               {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, 819200, 819200},
                               {"RLIMIT_CORE", RLIMIT_CORE, 0, kMax},
                               {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, kMax, kMax},
                               {"RLIMIT_STACK", RLIMIT_STACK, 8u << 20, kMax}};
  for (const SoftLimit& limit : asked.soft) {
    const std::string_view name = oci_name(limit.name);
    if (name.empty()) continue;
    auto it = std::ranges::find_if(wanted, [&](const JobLimit& w) { return w.name == name; });
    if (it == wanted.end())
      it = wanted.insert(wanted.end(), JobLimit{name, resource_of(limit.name), kMax, kMax});
    it->soft = limit.value.value_or(kMax);
  }
  for (JobLimit& limit : wanted) {
    if (level == Sandbox::hardened && limit.resource == RLIMIT_CORE) limit.hard = 0;
    rlimit own{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(limit.resource), &own) == 0)
      limit.hard = std::min<std::uint64_t>(limit.hard, own.rlim_max);
    limit.soft = std::min(limit.soft, limit.hard);
  }
  return wanted;
}

std::string write_oci_config(const NodeSetup& setup, const LaunchRequest& request,
                             const OciInput& input) {
  rapidjson::StringBuffer buffer;
  Writer w(buffer);
  OciProcess init{
      {kInitInside}, input.env, input.cwd, input.has_limits ? nullptr : &request.limits};
  init.args.insert(init.args.end(), input.args.begin(), input.args.end());
  object(w, [&] {
    pair(w, "ociVersion", "1.0.2");
    object(w, "process", [&] { process(w, setup, request, init); });
    object(w, "root", [&] {
      pair(w, "path", input.root);
      flag(w, "readonly", input.read_only);
    });
    pair(w, "hostname", setup.node);
    list(w, "mounts", [&] { mounts(w, setup, request); });
    hooks(w, request);
    object(w, "linux", [&] { linux_part(w, setup, request, input); });
    if (setup.runtime == RuntimeKind::crun && !input.seccomp_bpf.empty())
      object(w, "annotations", [&] { pair(w, "run.oci.seccomp_bpf_data", input.seccomp_bpf); });
  });
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace gantry::runtime
