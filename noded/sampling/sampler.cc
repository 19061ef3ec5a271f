#include "noded/sampling/sampler.h"

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

void Sampler::hold(const proto::AttemptKey& key, const std::string& disk) {
  if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.hold(disk);
}

void Sampler::let_go(const proto::AttemptKey& key, const std::string& disk) {
  if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.let_go(disk);
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

}  // namespace gantry::sampling
