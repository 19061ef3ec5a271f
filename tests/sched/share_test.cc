// Tests parts of GPUs on random queues: no GPU has jobs of two tenants or is given more than once
// over, and a part that fits on a GPU of its tenant does not take another GPU.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/gpu/gpu_share.h"

using namespace gantry;
using namespace gantry::sched;

namespace {

constexpr std::uint32_t kTenants = 3, kNodes = 4, kGpus = 4;

struct Gpu {
  std::map<JobId, std::uint32_t> by_job;  // thousandths
  PartitionId tenant{};
  [[nodiscard]] std::uint32_t sum() const {
    std::uint32_t sum = 0;
    for (const auto& [job, n] : by_job) sum += n;
    return sum;
  }
};

struct World {
  Replica replica;
  std::map<std::pair<std::uint32_t, std::uint16_t>, Gpu> gpus;  // by node and index
  std::map<JobId, JobPlaced> placed;
  std::map<JobId, JobQueued> queued;
  Instant now{};

  World() {
    PartitionChanged p;
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      for (std::uint16_t c = 0; c < 32; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{64} << 30;
      node.gpus = kGpus;
      node.gpu_sharing = n != 0;
      p.nodes.push_back(node.node);
      replica.apply(std::move(node));
    }
    for (std::uint32_t t = 0; t < kTenants; ++t) {
      p.partition = PartitionId{t};
      p.name = "t" + std::to_string(t);
      replica.apply(PartitionChanged(p));
    }
  }

  // Carries out a start as the controller would after its own checks.
  void start(const Start& s) {
    const JobQueued job = queued.at(s.job);
    for (const NodeGrant& g : s.grants)
      for (const GpuGrant& d : g.devices) {
        Gpu& gpu = gpus[{g.node.value(), d.gpu}];
        if (!gpu.by_job.empty()) {
          CHECK(is_part(d));
          CHECK(gpu.tenant == job.key.partition);
        }
        if (is_part(d)) CHECK(g.node.value() != 0);
        gpu.tenant = job.key.partition;
        gpu.by_job[s.job] = d.thousandths.value();
        CHECK(gpu.sum() <= 1000);
      }
    JobPlaced placed_job;
    placed_job.job = s.job;
    placed_job.grants = s.grants;
    placed_job.partition = job.key.partition;
    placed_job.ends_by = now + *job.key.time_limit;
    queued.erase(s.job);
    replica.apply(JobUnqueued{s.job});
    replica.apply(JobPlaced(placed_job));
    placed[s.job] = std::move(placed_job);
  }

  void end(JobId job) {
    for (const NodeGrant& g : placed.at(job).grants) {
      for (const GpuGrant& d : g.devices) gpus[{g.node.value(), d.gpu}].by_job.erase(job);
      replica.apply(NodeReleased{job, g.node});
    }
    placed.erase(job);
  }
};

}  // namespace

TEST_CASE("no GPU has jobs of two tenants, and none is given more than once over") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    World w;
    std::uint64_t next = 1;
    Policy policy;
    for (int turn = 0; turn < 120; ++turn) {
      for (std::uint64_t n = random() % 6; n > 0; --n) {
        JobQueued job;
        job.job = JobId{next++};
        job.key.partition = PartitionId{static_cast<std::uint32_t>(random() % kTenants)};
        job.key.shape.memory_per_node = std::int64_t{1} << 30;
        job.key.time_limit = seconds(static_cast<std::int64_t>(10 + random() % 200));
        if (random() % 4 == 0)
          job.key.shape.gpus_per_node = static_cast<std::uint32_t>(1 + random() % kGpus);
        else
          job.key.shape.gpu_share = static_cast<std::uint32_t>(1 + random() % 999);
        job.queued_since = w.now;
        w.queued[job.job] = job;
        w.replica.apply(JobQueued(job));
      }
      const Plan plan = schedule(w.replica, w.now, policy);
      for (const Start& s : plan.starts) w.start(s);
      CHECK(w.replica.audit() == "");
      w.now = w.now + seconds(7);
      std::vector<JobId> done;
      for (const auto& [job, p] : w.placed)
        if (*p.ends_by <= w.now || random() % 9 == 0) done.push_back(job);
      for (const JobId job : done) w.end(job);
    }
    for (int turn = 0; turn < 400 && !(w.queued.empty() && w.placed.empty()); ++turn) {
      for (const Start& s : schedule(w.replica, w.now, policy).starts) w.start(s);
      w.now = w.now + seconds(200);
      std::vector<JobId> done;
      for (const auto& [job, p] : w.placed) done.push_back(job);
      for (const JobId job : done) w.end(job);
    }
    CHECK_MESSAGE(w.queued.empty(), "every job starts sooner or later, seed ", seed);
  }
}

TEST_CASE("a part goes to the tenant's fullest GPU that has room") {
  std::vector<GpuView> devices;
  for (std::uint16_t i = 0; i < 3; ++i) devices.push_back({i, -1, false, "h100", {}});
  GpuShares shares;
  const PartitionId red{0}, blue{1};
  const auto part = [](std::uint16_t gpu, std::uint16_t n) {
    return std::vector<GpuGrant>{{gpu, std::nullopt, 0, GpuThousandths::in<std::uint16_t>(n)}};
  };
  CHECK(!shares.room_beside(devices, red, DevicePart{100}));
  shares.mark(part(0, 300), red, true);
  shares.mark(part(2, 600), red, true);
  CHECK(shares.shared() == 2);
  CHECK(shares.room_beside(devices, red, DevicePart{400}) == 2);
  CHECK(shares.room_beside(devices, red, DevicePart{401}) == 0);
  CHECK(!shares.room_beside(devices, red, DevicePart{701}));
  CHECK(!shares.room_beside(devices, blue, DevicePart{1}));
  shares.mark(part(0, 300), red, false);
  shares.mark(part(0, 1), blue, true);
  CHECK(shares.room_beside(devices, blue, DevicePart{999}) == 0);
  CHECK(shares.shared() == 2);
}
