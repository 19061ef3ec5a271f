#include "noded/neighbours/rates.h"

namespace gantry::neighbours {
namespace {

// A job's own limit counts as reached from this part of it on.
constexpr double kReached = 0.9;
constexpr double kMemoryReached = 0.95;

// Requests keep a disk busy as well as bytes: one request counts as this many bytes.
constexpr double kBytesOfRequest = 32 * 1024;

double grown(std::uint64_t before, std::uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0.0;
}

double part(Duration before, Duration now, double us) {
  const auto spent = static_cast<double>((now - before).us);
  return std::clamp(spent / us, 0.0, 1.0);
}

template <class T>
const T* named(const std::vector<T>& all, const std::string& name) {
  const auto it = std::ranges::find_if(all, [&](const T& one) { return one.name == name; });
  return it == all.end() ? nullptr : &*it;
}

struct Pair {
  const JobCount& before;
  const JobCount& now;
};

class Interval {
 public:
  Interval(const Sample& before, const Sample& now) : before_(before), now_(now) {
    us_ = static_cast<double>((now.at - before.at).us);
    for (const JobCount& job : now.jobs) {
      const auto it = std::lower_bound(
          before.jobs.begin(), before.jobs.end(), job.key,
          [](const JobCount& a, const proto::AttemptKey& key) { return a.key < key; });
      if (it != before.jobs.end() && it->key == job.key) pairs_.push_back({*it, job});
    }
  }

  std::map<Channel, Row> rows() {
    if (us_ <= 0) return {};
    cpu();
    memory();
    disks();
    links();
    whole(Resource::memory_traffic, before_.memory_traffic, now_.memory_traffic,
          now_.memory_traffic_most, &JobCount::memory_traffic);
    whole(Resource::pcie, before_.pcie, now_.pcie, now_.pcie_most, &JobCount::pcie);
    return std::move(rows_);
  }

 private:
  [[nodiscard]] double per_second(double amount) const { return amount * 1e6 / us_; }

  Row& row(Channel channel) {
    Row& made = rows_[std::move(channel)];
    made.at = now_.at;
    return made;
  }

  std::optional<double> waited(const Pair& p, Duration Stalled::*which) const {
    if (!p.before.stalled || !p.now.stalled) return std::nullopt;
    return part((*p.before.stalled).*which, (*p.now.stalled).*which, us_);
  }

  // A job that keeps all its cores busy waits for cores only because it has too many threads. Its
  // loss to other jobs is at most what its cores did not do for it.
  void cpu() {
    Row& r = row({Resource::cpu, {}});
    r.use = static_cast<double>((now_.cpu - before_.cpu).us) / us_;
    const double cores = std::max<double>(now_.cpus, 1);
    r.level = before_.stalled && now_.stalled ? part(before_.stalled->cpu, now_.stalled->cpu, us_)
                                              : std::clamp(r.use / cores, 0.0, 1.0);
    for (const Pair& p : pairs_) {
      JobRow& job = r.jobs.emplace_back();
      job.key = p.now.key;
      job.cpus = p.now.cpus;
      job.use = static_cast<double>((p.now.cpu - p.before.cpu).us) / us_;
      job.waited = waited(p, &Stalled::cpu);
      const double has = p.now.cpus.empty() ? cores : static_cast<double>(p.now.cpus.size());
      const double throttled = part(p.before.throttled, p.now.throttled, us_);
      const double lost = std::clamp(1 - job.use / has, 0.0, 1.0);
      job.limited = throttled > 0.05;
      job.own = std::max(throttled, job.waited.value_or(0) - lost);
    }
  }

  void memory() {
    if (!before_.stalled || !now_.stalled) return;
    Row& r = row({Resource::memory, {}});
    r.use = static_cast<double>(now_.memory_used);
    r.level = part(before_.stalled->memory, now_.stalled->memory, us_);
    for (const Pair& p : pairs_) {
      JobRow& job = r.jobs.emplace_back();
      job.key = p.now.key;
      job.use = static_cast<double>(p.now.memory);
      job.waited = waited(p, &Stalled::memory);
      job.limited = p.now.memory_limit > 0 &&
                    job.use >= kMemoryReached * static_cast<double>(p.now.memory_limit);
      if (job.limited) job.own = job.waited.value_or(0);
    }
  }

  void disks() {
    for (const DiskCount& disk : now_.disks) {
      const DiskCount* old = named(before_.disks, disk.name);
      if (old == nullptr) continue;
      Row& r = row({Resource::disk, disk.name});
      r.use = per_second(grown(old->bytes, disk.bytes) +
                         kBytesOfRequest * grown(old->operations, disk.operations));
      r.level = part(old->busy, disk.busy, us_);
      for (const Pair& p : pairs_) disk_of(p, disk.name, r);
    }
  }

  // The kernel counts pressure for all disks together, so it counts for a disk only if the job uses
  // that disk.
  void disk_of(const Pair& p, const std::string& name, Row& r) {
    const DiskUse* use = named(p.now.disks, name);
    if (use == nullptr) return;
    const DiskUse* old = named(p.before.disks, name);
    JobRow& job = r.jobs.emplace_back();
    job.key = p.now.key;
    const double bytes = per_second(grown(old == nullptr ? 0 : old->bytes, use->bytes));
    const double operations =
        per_second(grown(old == nullptr ? 0 : old->operations, use->operations));
    job.use = bytes + kBytesOfRequest * operations;
    job.waited = waited(p, &Stalled::io);
    job.limited =
        use->held || (use->limit > 0 && bytes >= kReached * static_cast<double>(use->limit));
    if (job.limited) job.own = job.waited.value_or(0);
    // In a shared queue a job waits for others in proportion to their use of the disk.
    if (r.use > 0 && !job.limited)
      job.natural = job.waited.value_or(0) * std::min(job.use / r.use, 1.0);
    job.alone = std::max(job.natural - waited(p, &Stalled::memory).value_or(0), 0.0);
  }

  void links() {
    for (const LinkCount& link : now_.links) {
      const auto old = std::ranges::find_if(before_.links, [&](const LinkCount& one) {
        return one.name == link.name && one.direction == link.direction;
      });
      if (old == before_.links.end() || link.bytes_per_second == 0) continue;
      const bool in = link.direction == Direction::in;
      Row& r = row({Resource::network, link.name + (in ? " in" : " out")});
      r.use = per_second(grown(old->bytes, link.bytes));
      r.level = r.use / static_cast<double>(link.bytes_per_second);
      for (const Pair& p : pairs_) {
        const auto& before = in ? p.before.network_in : p.before.network_out;
        const auto& now = in ? p.now.network_in : p.now.network_out;
        if (!before || !now) continue;
        JobRow& job = r.jobs.emplace_back();
        job.key = p.now.key;
        job.use = per_second(grown(*before, *now));
        job.limited = p.now.network_limit > 0 &&
                      job.use >= kReached * static_cast<double>(p.now.network_limit);
      }
    }
  }

  void whole(Resource resource, const std::optional<std::uint64_t>& before,
             const std::optional<std::uint64_t>& now, std::uint64_t most,
             std::optional<std::uint64_t> JobCount::*of_job) {
    if (!before || !now || most == 0) return;
    Row& r = row({resource, {}});
    r.use = per_second(grown(*before, *now));
    r.level = r.use / static_cast<double>(most);
    for (const Pair& p : pairs_) {
      const auto& old = p.before.*of_job;
      const auto& count = p.now.*of_job;
      if (!old || !count) continue;
      JobRow& job = r.jobs.emplace_back();
      job.key = p.now.key;
      job.use = per_second(grown(*old, *count));
    }
  }

  const Sample& before_;
  const Sample& now_;
  double us_ = 0;
  std::vector<Pair> pairs_;
  std::map<Channel, Row> rows_;
};

}  // namespace

const JobRow* Row::of(const proto::AttemptKey& key) const {
  const auto it =
      std::lower_bound(jobs.begin(), jobs.end(), key,
                       [](const JobRow& a, const proto::AttemptKey& k) { return a.key < k; });
  return it == jobs.end() || it->key != key ? nullptr : &*it;
}

double Row::machine() const {
  double rest = use;
  for (const JobRow& job : jobs) rest -= job.use;
  return std::max(rest, 0.0);
}

std::map<Channel, Row> rates(const Sample& before, const Sample& now) {
  return Interval(before, now).rows();
}

}  // namespace gantry::neighbours
