#include "noded/sampling/sampler.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"

namespace gantry::sampling {

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)),
      machine_(options_.proc, options_.sys, options_.memory_traffic_most),
      groups_(options_.sys + "/fs/resctrl", options_.cgroups) {}

void Sampler::watch(std::vector<WatchedJob> jobs) {
  std::vector<std::string> cgroups;
  for (const WatchedJob& job : jobs) cgroups.push_back(job.cgroup);
  groups_.watch(cgroups);
  std::map<proto::AttemptKey, JobFiles> next;
  for (WatchedJob& job : jobs) {
    const proto::AttemptKey key = job.key;
    const auto known = jobs_.find(key);
    if (known != jobs_.end() && known->second.job() == job)
      next.insert(jobs_.extract(known));
    else
      next.emplace(key, JobFiles(options_.cgroups, groups_.path_of(job.cgroup), job));
  }
  jobs_ = std::move(next);
}

neighbours::Sample Sampler::read(Instant at) {
  neighbours::Sample out;
  out.at = at;
  machine_.read(out);
  out.jobs.reserve(jobs_.size());
  for (const auto& [key, files] : jobs_) out.jobs.push_back(files.read(machine_.disks(), buffer_));
  return out;
}

const WatchedJob* Sampler::job(const proto::AttemptKey& key) const {
  const auto it = jobs_.find(key);
  return it == jobs_.end() ? nullptr : &it->second.job();
}

std::vector<std::string> Sampler::not_counted() const {
  std::vector<std::string> out;
  if (!machine_.counts_pressure())
    out.emplace_back("pressure: the kernel does not count it (psi=1 switches it on)");
  else if (options_.cgroups.version != 2)
    out.emplace_back("pressure of each job: it needs cgroup v2");
  if (options_.cgroups.version == 0) out.emplace_back("use of each job: no cgroup may be written");
  if (machine_.disks().empty()) out.emplace_back("disks: the machine shows none");
  if (!machine_.knows_links()) out.emplace_back("network: no link says how much it can carry");
  if (!machine_.counts_memory_traffic())
    out.emplace_back(options_.memory_traffic_most == 0
                         ? "memory bandwidth: noded.memory_bandwidth does not say how much there is"
                         : "memory bandwidth: resctrl is not mounted, or counts none");
  out.emplace_back("PCIe: no counter is read");
  return out;
}

namespace {

// A process may be forked while its parent is being moved, so the list is read again.
constexpr unsigned kTimes = 3;

}  // namespace

MonitorGroups::MonitorGroups(const std::string& resctrl, runtime::CgroupLayout layout)
    : groups_(resctrl + "/mon_groups/"),
      prefix_(layout.relative + "."),
      layout_(std::move(layout)),
      counts_(layout_.version != 0 && !runtime::list_dir(resctrl + "/mon_data").empty()) {
  prefix_.erase(0, prefix_.find_first_not_of('/'));
  std::ranges::replace(prefix_, '/', '.');
  if (counts_) remove_others();
}

void MonitorGroups::watch(const std::vector<std::string>& cgroups) {
  if (!counts_) return;
  std::map<std::string, unsigned> next;
  for (const std::string& cgroup : cgroups) {
    const auto known = moved_.find(cgroup);
    unsigned times = known == moved_.end() ? 0 : known->second;
    if (times == 0 && ::mkdir(path_of(cgroup).c_str(), 0755) != 0 && errno != EEXIST)
      times = kTimes;
    if (times < kTimes) {
      move_processes(cgroup);
      ++times;
    }
    next[cgroup] = times;
  }
  const bool some_ended =
      std::ranges::any_of(moved_, [&](const auto& one) { return !next.contains(one.first); });
  moved_ = std::move(next);
  if (some_ended) remove_others();
}

void MonitorGroups::remove_others() {
  for (const std::string& name : runtime::list_dir(groups_))
    if (name.starts_with(prefix_ + "job_") && !moved_.contains(name.substr(prefix_.size())))
      ::rmdir((groups_ + name).c_str());
}

// The kernel accepts one thread per write.
void MonitorGroups::move_processes(const std::string& cgroup) const {
  const Fd tasks(::open((path_of(cgroup) + "/tasks").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!tasks) return;
  for (const int pid : runtime::cgroup_processes(layout_, cgroup))
    for (const std::string& thread : runtime::list_dir(fmt::format("/proc/{}/task", pid)))
      if (::write(tasks.get(), (thread + "\n").c_str(), thread.size() + 1) < 0 && errno != ESRCH)
        return;
}

}  // namespace gantry::sampling
