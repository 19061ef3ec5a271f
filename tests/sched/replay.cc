#include "tests/sched/replay.h"
#include "tests/places.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <queue>
#include <sstream>

namespace gantry::sched {
std::string read_trace(const std::string& path) {
  std::string text;
  if (!path.ends_with(".gz")) {
    std::ifstream in(path);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  const std::string command = "zcat '" + path + "'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 65536> block;
  while (pipe) {
    const std::size_t n = std::fread(block.data(), 1, block.size(), pipe.get());
    if (n == 0) break;
    text.append(block.data(), n);
  }
  return text;
}

namespace {

Replica& set_up(Replica& replica, std::uint32_t processors, Pool pool) {
  const std::uint32_t nodes = pool == Pool::one_node ? 1 : processors;
  PartitionChanged partition;
  partition.name = "pool";
  for (std::uint32_t n = 0; n < nodes; ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = "n" + std::to_string(n);
    node.available = true;
    for (std::uint32_t c = 0; c < processors / nodes; ++c)
      node.cpus.push_back(static_cast<std::uint16_t>(c));
    replica.apply(node);
    partition.nodes.push_back(NodeId{n});
  }
  replica.apply(partition);
  return replica;
}

ClassKey class_of(const LogJob& job, Pool pool) {
  ClassKey key;
  key.time_limit = seconds(job.limit);
  key.shape.tasks = job.processors;
  if (pool == Pool::many_nodes) key.shape.min_nodes = key.shape.max_nodes = job.processors;
  return key;
}

}  // namespace

std::string trace_path(const std::string& file) {
  return source_dir() + "/../shared/traces/" + file;
}

std::optional<std::vector<LogJob>> read_swf(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::vector<LogJob> jobs;
  std::istringstream lines(read_trace(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == ';') continue;
    std::istringstream fields(line);
    std::array<double, 9> f{};
    for (double& value : f) fields >> value;
    LogJob job{static_cast<std::uint64_t>(f[0]),
               static_cast<std::int64_t>(f[1]),
               static_cast<std::int64_t>(f[3]),
               static_cast<std::int64_t>(f[8]),
               static_cast<std::uint32_t>(std::max(f[4], f[7])),
               static_cast<std::int64_t>(f[2])};
    if (job.limit <= 0) job.limit = job.run;
    if (job.run > 0 && job.processors > 0) jobs.push_back(job);
  }
  std::sort(jobs.begin(), jobs.end(), [](const LogJob& a, const LogJob& b) {
    return std::pair{a.submit, a.id} < std::pair{b.submit, b.id};
  });
  return jobs;
}

namespace {

class Replay {
 public:
  Replay(const std::vector<LogJob>& jobs, std::uint32_t processors, Pool pool, const Policy& policy)
      : jobs_(jobs), pool_(pool), policy_(policy) {
    set_up(replica_, processors, pool);
    result_.waits.assign(jobs.size(), -1);
  }

  Replayed run() {
    while (next_ < jobs_.size() || !ends_.empty()) {
      std::int64_t t = next_ < jobs_.size() ? jobs_[next_].submit : ends_.top().at;
      if (!ends_.empty()) t = std::min(t, ends_.top().at);
      for (; next_ < jobs_.size() && jobs_[next_].submit == t; ++next_)
        replica_.apply(
            JobQueued{id_of(next_), class_of(jobs_[next_], pool_), 0, {t * 1'000'000}, 1});
      std::vector<End> early;
      for (; !ends_.empty() && ends_.top().at == t; ends_.pop()) {
        const LogJob& job = jobs_[ends_.top().job];
        if (job.run < job.limit)
          early.push_back(ends_.top());
        else
          release(ends_.top());
      }
      if (early.empty()) plan(t);
      for (const End& end : early) {
        release(end);
        plan(t);
      }
    }
    result_.audit = replica_.audit();
    return std::move(result_);
  }

 private:
  struct End {
    std::int64_t at;
    std::uint32_t job;  // index
    std::vector<NodeGrant> grants;
    bool operator>(const End& o) const { return std::pair{at, job} > std::pair{o.at, o.job}; }
  };
  // Job ids follow the places in the list, so that jobs with equal submit times keep the list's
  // order.
  static JobId id_of(std::size_t index) { return JobId{index + 1}; }

  void release(const End& end) {
    for (const NodeGrant& g : end.grants) replica_.apply(NodeReleased{id_of(end.job), g.node});
  }

  void plan(std::int64_t t) {
    Plan plan = schedule(replica_, Instant{t * 1'000'000}, policy_);
    ++result_.plans;
    result_.backfilled += plan.stats.backfilled;
    for (Start& start : plan.starts) {
      const auto index = static_cast<std::uint32_t>(start.job.value() - 1);
      const LogJob& job = jobs_[index];
      result_.waits[index] = t - job.submit;
      replica_.apply(JobUnqueued{start.job});
      replica_.apply(
          JobPlaced{start.job, start.grants, Instant{(t + job.limit) * 1'000'000}, false});
      ends_.push({t + std::min(job.run, job.limit), index, std::move(start.grants)});
    }
  }

  const std::vector<LogJob>& jobs_;
  const Pool pool_;
  const Policy& policy_;
  Replica replica_;
  Replayed result_;
  std::size_t next_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

Replayed replay(const std::vector<LogJob>& jobs, std::uint32_t processors, Pool pool,
                const Policy& policy) {
  return Replay(jobs, processors, pool, policy).run();
}

double mean_bounded_slowdown(const std::vector<LogJob>& jobs,
                             const std::vector<std::int64_t>& waits) {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto run = static_cast<double>(jobs[i].run);
    sum += std::max(1.0, (static_cast<double>(waits[i]) + run) / std::max(run, 10.0));
  }
  return sum / static_cast<double>(jobs.size());
}

}  // namespace gantry::sched
