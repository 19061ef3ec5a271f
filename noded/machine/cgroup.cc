#include "noded/machine/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <set>
#include <utility>

namespace gantry::runtime {
namespace {

std::int64_t number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::int64_t read_number(const std::string& path) {
  const auto text = read_file(path);
  return text ? number(*text) : 0;
}

// Reads N from the line "key N" of a file.
std::int64_t read_keyed(const std::string& path, std::string_view key) {
  const auto text = read_file(path);
  if (!text) return 0;
  for (const auto& line : split(*text, '\n'))
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return number(std::string_view(line).substr(key.size()));
  return 0;
}

void pause_for(std::int64_t us) {
  const timespec t{us / 1'000'000, (us % 1'000'000) * 1000};
  // tidy-allow(sleep): no event tells when a killed cgroup can be removed
  ::nanosleep(&t, nullptr);
}

Result<void> make(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_errno(ErrorCode::io_error, path);
  return {};
}

// In this hierarchy nothing is set for single jobs (cgroup.h), so their processes are in the
// node's directory.
bool is_shared(const CgroupLayout& layout, const CgroupMount& mount) {
  return layout.version == 1 && layout.device_majors.empty() && mount.controllers.size() == 1 &&
         mount.controllers[0] == "devices";
}

// If a memory hierarchy does not count child directories, a step's own directory would let its
// processes escape the job's limit.
bool is_step_controller(const CgroupMount& mount, const std::string& name) {
  for (const auto& c : mount.controllers) {
    if (c == "freezer" || c == "cpuacct") return true;
    if (c != "memory") continue;
    const std::string job = mount.path + "/" + name.substr(0, name.rfind('/'));
    return read_number(job + "/memory.use_hierarchy") == 1;
  }
  return false;
}

Result<void> limit_cpuset(const CgroupLayout& layout, const std::string& name,
                          const CgroupLimits& limits) {
  const auto* mount = layout.with("cpuset");
  if (mount == nullptr) return {};
  const std::string dir = mount->path + "/" + name;
  if (layout.version == 1 || !limits.mems.empty()) {
    std::string mems = cpu_list(limits.mems);
    if (mems.empty()) mems = trim(read_file(mount->path + "/cpuset.mems").value_or(""));
    TRY(write_existing(dir + "/cpuset.mems", mems));
  }
  if (layout.version == 1 || !limits.cpus.empty()) {
    std::string cpus = cpu_list(limits.cpus);
    if (cpus.empty()) cpus = trim(read_file(mount->path + "/cpuset.cpus").value_or(""));
    TRY(write_existing(dir + "/cpuset.cpus", cpus));
  }
  return {};
}

Result<void> limit_memory(const CgroupLayout& layout, const std::string& name,
                          const CgroupLimits& limits) {
  const auto* mount = layout.with("memory");
  if (mount == nullptr || limits.memory <= 0) return {};
  const std::string dir = mount->path + "/" + name;
  const std::string bytes = std::to_string(limits.memory);
  if (layout.version == 1) {
    TRY(write_existing(dir + "/memory.limit_in_bytes", bytes));
    if (layout.swap_accounting) try_write(dir + "/memory.memsw.limit_in_bytes", bytes);
    return {};
  }
  TRY(write_existing(dir + "/memory.max", bytes));
  if (layout.swap_accounting) try_write(dir + "/memory.swap.max", "0");
  try_write(dir + "/memory.oom.group", "1");
  return {};
}

void remove_below(const std::string& dir) {
  for (const auto& name : list_dir(dir)) {
    struct stat st {};
    const std::string child = dir + "/" + name;
    if (::lstat(child.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) {
      remove_below(child);
      ::rmdir(child.c_str());
    }
  }
}

void collect_processes(const std::string& dir, std::set<int>& pids) {
  const auto text = read_file(dir + "/cgroup.procs");
  if (!text) return;
  for (const auto& line : split(*text, '\n'))
    if (const auto pid = number(line); pid > 0) pids.insert(static_cast<int>(pid));
  for (const auto& name : list_dir(dir)) {
    struct stat st {};
    const std::string child = dir + "/" + name;
    if (::lstat(child.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) collect_processes(child, pids);
  }
}

Usage read_usage_v1(const CgroupLayout& layout, const std::string& name) {
  Usage usage;
  if (const auto* m = layout.with("cpuacct")) {
    const std::string dir = m->path + "/" + name;
    usage.cpu_user_us = read_number(dir + "/cpuacct.usage_user") / 1000;
    usage.cpu_system_us = read_number(dir + "/cpuacct.usage_sys") / 1000;
  }
  if (const auto* m = layout.with("memory"))
    usage.memory_peak_bytes = read_number(m->path + "/" + name + "/memory.max_usage_in_bytes");
  if (const auto* m = layout.with("blkio")) {
    const auto text =
        read_file(m->path + "/" + name + "/blkio.throttle.io_service_bytes_recursive");
    for (const auto& line : split(text.value_or(""), '\n')) {
      const auto words = split(line, ' ');  // "254:0 Read 4096"
      if (words.size() != 3) continue;
      if (words[1] == "Read") usage.io_read_bytes += number(words[2]);
      if (words[1] == "Write") usage.io_write_bytes += number(words[2]);
    }
  }
  return usage;
}

Usage read_usage_v2(const std::string& dir) {
  Usage usage;
  usage.cpu_user_us = read_keyed(dir + "/cpu.stat", "user_usec");
  usage.cpu_system_us = read_keyed(dir + "/cpu.stat", "system_usec");
  usage.memory_peak_bytes = read_number(dir + "/memory.peak");
  const auto text = read_file(dir + "/io.stat");
  for (const auto& line : split(text.value_or(""), '\n'))
    for (const auto& word : split(line, ' ')) {  // "254:0 rbytes=4096 wbytes=0 ..."
      if (word.starts_with("rbytes="))
        usage.io_read_bytes += number(std::string_view(word).substr(7));
      if (word.starts_with("wbytes="))
        usage.io_write_bytes += number(std::string_view(word).substr(7));
    }
  return usage;
}

}  // namespace

std::string cpu_list(const std::vector<std::uint16_t>& ids) {
  std::string out;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += std::to_string(ids[i]);
    if (last > i) out += "-" + std::to_string(ids[last]);
    i = last + 1;
  }
  return out;
}

std::vector<std::string> list_disks() {
  std::vector<std::string> out;
  for (const auto& disk : list_dir("/sys/block")) {
    const bool again = disk.starts_with("loop") || disk.starts_with("ram") ||
                       disk.starts_with("zram") || disk.starts_with("sr") || disk.starts_with("fd");
    if (!again) out.push_back(trim(read_file("/sys/block/" + disk + "/dev").value_or("")));
  }
  std::erase(out, "");
  return out;
}

Result<void> limit_io(const CgroupLayout& layout, const std::string& name, const std::string& disk,
                      const IoLimit& limit) {
  const bool v2 = layout.version == 2;
  const auto* mount = layout.with(v2 ? "io" : "blkio");
  if (mount == nullptr)
    return fail(ErrorCode::unsupported, "no cgroup controller of disks is there");
  const std::string dir = mount->path + "/" + name;
  const auto text = [&](std::uint64_t n) { return v2 && n == 0 ? "max" : std::to_string(n); };
  const std::string bytes = text(limit.bytes), requests = text(limit.requests);
  if (v2)
    return write_existing(dir + "/io.max", disk + " rbps=" + bytes + " wbps=" + bytes +
                                               " riops=" + requests + " wiops=" + requests);
  for (const char* way : {"read", "write"}) {
    const std::string file = dir + "/blkio.throttle." + way;
    TRY(write_existing(file + "_bps_device", disk + " " + bytes));
    TRY(write_existing(file + "_iops_device", disk + " " + requests));
  }
  return {};
}

Result<void> weigh_cpu(const CgroupLayout& layout, const std::string& name, std::uint64_t weight) {
  const auto* mount = layout.with("cpu");
  if (mount == nullptr || layout.version != 2)
    return fail(ErrorCode::unsupported, "jobs have no weights of cpu here: that needs cgroup v2");
  return write_existing(mount->path + "/" + name + "/cpu.weight", std::to_string(weight));
}

Result<void> create_cgroup(const CgroupLayout& layout, const std::string& name,
                           const CgroupLimits& limits) {
  for (const auto& mount : layout.mounts)
    if (!is_shared(layout, mount)) TRY(make(mount.path + "/" + name));
  TRY(install_job_device_filter(layout, name, limits.devices));
  TRY(limit_cpuset(layout, name, limits));
  TRY(limit_memory(layout, name, limits));
  if (limits.io_rate > 0)
    for (const auto& disk : list_disks())
      if (auto r = limit_io(layout, name, disk, {limits.io_rate, 0}); !r) return r;
  if (const auto* mount = layout.with("pids"); mount != nullptr && limits.pids > 0)
    return write_existing(mount->path + "/" + name + "/pids.max", std::to_string(limits.pids));
  return {};
}

Result<void> create_step_cgroup(const CgroupLayout& layout, const std::string& name,
                                std::int64_t memory, const std::vector<DeviceRule>& closed) {
  const bool rules = !closed.empty() && has_device_rules(layout);
  for (const auto& mount : layout.mounts) {
    const bool of_devices = rules && &mount == layout.with("devices");
    if (layout.version == 2 || of_devices || is_step_controller(mount, name))
      TRY(make(mount.path + "/" + name));
  }
  if (rules) TRY(close_devices(layout, name, closed));
  if (memory <= 0 || !counts_memory(layout, name)) return {};
  CgroupLimits limits;
  limits.memory = memory;
  return limit_memory(layout, name, limits);
}

bool counts_memory(const CgroupLayout& layout, const std::string& name) {
  const auto* mount = layout.with("memory");
  if (mount == nullptr) return false;
  const char* file = layout.version == 1 ? "/memory.max_usage_in_bytes" : "/memory.peak";
  return ::access((mount->path + "/" + name + file).c_str(), R_OK) == 0;
}

std::int64_t resident_bytes(const CgroupLayout& layout, const std::string& name) {
  std::int64_t pages = 0;
  for (const int pid : cgroup_processes(layout, name)) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/statm");  // "SIZE RESIDENT ..."
    const auto words = split(text.value_or(""), ' ');
    if (words.size() > 1) pages += number(words[1]);
  }
  return pages * ::sysconf(_SC_PAGESIZE);
}

std::vector<Fd> open_cgroup_entries(const CgroupLayout& layout, const std::string& name) {
  std::vector<Fd> entries;
  // v1: a single thread that moves itself, by writing "0" into tasks, needs no system-wide lock and
  // so does not wait for an RCU grace period. cgroup.procs would cost that wait (10 ms for seven
  // hierarchies).
  const char* file = layout.version == 1 ? "/tasks" : "/cgroup.procs";
  for (const auto& mount : layout.mounts) {
    std::string dir = mount.path + "/" + name;
    // v1: a step or job without a directory of its own uses the directory of the job or node above
    // it.
    for (;; dir.resize(dir.rfind('/'))) {
      Fd fd(::open((dir + file).c_str(), O_WRONLY | O_CLOEXEC));
      const bool missing = !fd && errno == ENOENT;
      if (fd) entries.push_back(std::move(fd));
      if (!missing || dir.size() <= mount.path.size()) break;
    }
  }
  return entries;
}

Fd open_cgroup_directory(const CgroupLayout& layout, const std::string& name) {
  if (layout.version != 2) return {};
  const std::string dir = layout.mounts.front().path + "/" + name;
  return Fd(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Usage read_usage(const CgroupLayout& layout, const std::string& name) {
  if (layout.version == 1) return read_usage_v1(layout, name);
  if (layout.version == 2) return read_usage_v2(layout.mounts.front().path + "/" + name);
  return {};
}

std::uint32_t read_oom_kills(const CgroupLayout& layout, const std::string& name) {
  const auto* mount = layout.with("memory");
  if (mount == nullptr) return 0;
  const std::string dir = mount->path + "/" + name;
  if (layout.version == 2)
    return static_cast<std::uint32_t>(read_keyed(dir + "/memory.events", "oom_kill"));
  // v1 counts a kill in the directory of the victim: for runc, in the one that runc made.
  auto kills = read_keyed(dir + "/memory.oom_control", "oom_kill");
  struct stat st {};
  if (::stat(dir.c_str(), &st) != 0 || st.st_nlink <= 2) return static_cast<std::uint32_t>(kills);
  for (const auto& child : list_dir(dir))
    if (!child.starts_with("memory.") && !child.starts_with("cgroup."))
      kills += read_keyed(dir + "/" + child + "/memory.oom_control", "oom_kill");
  return static_cast<std::uint32_t>(kills);
}

std::vector<int> cgroup_processes(const CgroupLayout& layout, const std::string& name) {
  std::set<int> pids;
  for (const auto& mount : layout.mounts) {
    collect_processes(mount.path + "/" + name, pids);
    if (layout.version == 2) break;
  }
  return {pids.begin(), pids.end()};
}

// Opens a pidfd of each process first, and then reads the list of processes again: a process whose
// pidfd was open before and whose number is still listed is certainly the right one.
void signal_cgroup(const CgroupLayout& layout, const std::string& name, int number,
                   const std::function<bool(int pid)>& hears) {
  constexpr std::size_t kAtOnce = 256;  // descriptors open at a time
  const auto all = cgroup_processes(layout, name);
  for (std::size_t begin = 0; begin < all.size(); begin += kAtOnce) {
    std::vector<std::pair<int, Fd>> held;
    for (std::size_t i = begin; i < std::min(all.size(), begin + kAtOnce); ++i)
      if (!hears || hears(all[i]))
        held.emplace_back(all[i], static_cast<int>(::syscall(SYS_pidfd_open, all[i], 0)));
    const auto now = cgroup_processes(layout, name);
    for (const auto& [pid, fd] : held)
      if (fd && std::ranges::binary_search(now, pid))
        ::syscall(SYS_pidfd_send_signal, fd.get(), number, nullptr, 0);
  }
}

Result<void> freeze_cgroup(const CgroupLayout& layout, const std::string& name, bool frozen) {
  if (layout.version == 2)
    return write_existing(layout.mounts.front().path + "/" + name + "/cgroup.freeze",
                          frozen ? "1" : "0");
  const auto* freezer = layout.with("freezer");
  if (freezer == nullptr)
    return fail(ErrorCode::wrong_state, "there is no cgroup that could be frozen");
  return write_existing(freezer->path + "/" + name + "/freezer.state",
                        frozen ? "FROZEN" : "THAWED");
}

bool can_freeze(const CgroupLayout& layout) {
  return layout.version == 2 || layout.with("freezer") != nullptr;
}

bool is_frozen(const CgroupLayout& layout, const std::string& name) {
  if (layout.version == 2)
    return read_number(layout.mounts.front().path + "/" + name + "/cgroup.freeze") == 1;
  const auto* freezer = layout.with("freezer");
  return freezer != nullptr &&
         read_number(freezer->path + "/" + name + "/freezer.self_freezing") == 1;
}

bool kill_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience) {
  if (layout.version == 0) return true;
  if (layout.version == 2) try_write(layout.mounts.front().path + "/" + name + "/cgroup.kill", "1");
  const auto* freezer = layout.version == 1 ? layout.with("freezer") : nullptr;
  const std::string state =
      freezer != nullptr ? freezer->path + "/" + name + "/freezer.state" : std::string();
  for (std::int64_t waited = 0, nap = 500;;
       waited += nap, nap = std::min<std::int64_t>(nap * 2, 20'000)) {
    if (cgroup_processes(layout, name).empty()) return true;
    if (freezer != nullptr) try_write(state, "FROZEN");
    signal_cgroup(layout, name, SIGKILL);
    if (freezer != nullptr) try_write(state, "THAWED");
    if (waited >= patience.us) return false;
    pause_for(nap);
  }
}

bool remove_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience) {
  std::int64_t waited = 0;
  bool clean = true;
  for (const auto& mount : layout.mounts) {
    const std::string dir = mount.path + "/" + name;
    for (std::int64_t nap = 200; ::rmdir(dir.c_str()) != 0 && errno != ENOENT;
         nap = std::min<std::int64_t>(nap * 2, 10'000)) {
      remove_below(dir);
      if (::rmdir(dir.c_str()) == 0 || errno == ENOENT) break;
      if (waited >= patience.us) {
        clean = false;
        break;
      }
      pause_for(nap);
      waited += nap;
    }
  }
  // Gantry never puts a process into these, so they are empty when the others are.
  for (const auto& other : layout.others) {
    const std::string dir = other + "/" + name;
    remove_below(dir);
    ::rmdir(dir.c_str());
  }
  return clean;
}

std::vector<std::string> list_cgroups(const CgroupLayout& layout) {
  std::set<std::string> names;
  const auto add = [&names](const std::string& dir) {
    for (const auto& name : list_dir(dir))
      if (name.starts_with("job_")) names.insert(name);
  };
  for (const auto& mount : layout.mounts) add(mount.path);
  for (const auto& other : layout.others) add(other);
  return {names.begin(), names.end()};
}

}  // namespace gantry::runtime
