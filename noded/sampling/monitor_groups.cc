#include "noded/sampling/monitor_groups.h"

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
namespace {

// A process may be born while its parent is being moved, so they are looked at again.
constexpr unsigned kTimes = 3;

}  // namespace

MonitorGroups::MonitorGroups(const std::string& resctrl, runtime::CgroupLayout layout)
    : groups_(resctrl + "/mon_groups/"),
      prefix_(layout.relative + "."),
      layout_(std::move(layout)),
      counts_(layout_.version != 0 && !runtime::list_dir(resctrl + "/mon_data").empty()) {
  prefix_.erase(0, prefix_.find_first_not_of('/'));
  std::replace(prefix_.begin(), prefix_.end(), '/', '.');
  if (counts_) remove_others();
}

std::string MonitorGroups::path_of(const std::string& cgroup) const {
  return groups_ + prefix_ + cgroup;
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
  const bool some_ended = std::any_of(moved_.begin(), moved_.end(),
                                      [&](const auto& one) { return !next.contains(one.first); });
  moved_ = std::move(next);
  if (some_ended) remove_others();
}

void MonitorGroups::remove_others() {
  for (const std::string& name : runtime::list_dir(groups_))
    if (name.starts_with(prefix_ + "job_") && !moved_.contains(name.substr(prefix_.size())))
      ::rmdir((groups_ + name).c_str());
}

// The kernel takes one thread with each write.
void MonitorGroups::move_processes(const std::string& cgroup) const {
  const Fd tasks(::open((path_of(cgroup) + "/tasks").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!tasks) return;
  for (const int pid : runtime::cgroup_processes(layout_, cgroup))
    for (const std::string& thread : runtime::list_dir(fmt::format("/proc/{}/task", pid)))
      if (::write(tasks.get(), (thread + "\n").c_str(), thread.size() + 1) < 0 && errno != ESRCH)
        return;
}

}  // namespace gantry::sampling
