// Tests slices through whole plans: slices that jobs get are legal and belong to nobody else, a
// large one is not starved by small ones, and GPUs that are partitioned by hand stay as they are.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched::slices_test {
namespace {

constexpr Instant kStart{seconds(1'000'000).us};

// The unit of slices does not mix with that of GPUs (tests/unit/test_quantity.cc).
static_assert(std::same_as<decltype(Demand{}.slices), SliceThousandths>);
static_assert(std::same_as<decltype(Room{}.gpu_thousandths()), GpuThousandths>);

class Cluster {
 public:
  Cluster(std::uint32_t nodes, std::uint16_t gpus, bool by_hand = false) {
    policy.keep_reservations = true;
    partition_.name = "main";
    for (std::uint32_t n = 0; n < nodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      for (std::uint16_t c = 0; c < 64; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{1} << 40;
      for (std::uint16_t g = 0; g < gpus; ++g)
        node.devices.push_back({g, -1, true, "h100", {}, by_hand && n == 0, {}});
      node.geometries = {geometry};
      nodes_.push_back(node);
      partition_.nodes.push_back(node.node);
    }
    for (NodeChanged& node : nodes_) replica.apply(node);
    replica.apply(partition_);
  }
  // Gives the partition to a tenant with this quota, which cannot borrow.
  void limit_to(std::int64_t gpus) {
    auto tenancy = std::make_shared<Tenancy>();
    tenancy->flavors.resize(1);
    tenancy->classes.resize(1);
    QuotaNode& tenant = tenancy->nodes.emplace_back();
    tenant.name = "speech";
    tenant.tenant = true;
    tenant.limits.resize(1);
    tenant.limits[0].nominal.fill(kUnlimited);
    tenant.limits[0].nominal[static_cast<std::size_t>(Resource::gpu)] = gpus * kGpuUnit;
    replica.apply(TenancyChanged{tenancy});
    partition_.quota_node = 0;
    replica.apply(partition_);
  }
  // Makes two tenants, on nodes that share GPUs.
  void share() {
    for (NodeChanged& node : nodes_) {
      node.gpu_sharing = true;
      replica.apply(node);
    }
    PartitionChanged other = partition_;
    other.partition = PartitionId{1};
    other.name = "other";
    replica.apply(other);
  }

  // Submits a job for a part of a slice, in thousandths.
  JobId submit_part(const std::string& profile, std::uint32_t part, std::optional<Duration> limit,
                    std::uint32_t tenant = 0) {
    JobQueued q;
    q.key.partition = PartitionId{tenant};
    q.key.shape.gpu_share = part;
    return submit(std::move(q), profile, 0, limit);
  }

  JobId submit(const std::string& profile, std::uint32_t count, std::optional<Duration> limit,
               std::uint32_t nodes = 1) {
    JobQueued q;
    q.key.shape.min_nodes = q.key.shape.max_nodes = q.key.shape.tasks = nodes;
    return submit(std::move(q), profile, count, limit);
  }
  // Submits a job without a number of nodes: it gets the fewest nodes that hold the tasks, with
  // `count` slices on each.
  JobId submit_tasks(const std::string& profile, std::uint32_t count, Duration limit,
                     std::uint32_t tasks) {
    JobQueued q;
    q.key.shape.max_nodes = q.key.shape.tasks = tasks;
    return submit(std::move(q), profile, count, limit);
  }
  JobId submit(JobQueued q, const std::string& profile, std::uint32_t count,
               std::optional<Duration> limit) {
    q.job = JobId{++last_};
    q.key.shape.memory_per_node = 1 << 20;
    q.key.shape.gpus_per_node = count;
    q.key.shape.gpu_slice = profile;
    q.key.time_limit = limit;
    q.queued_since = now;
    replica.apply(q);
    waiting[q.job] = q;
    return q.job;
  }
  Plan plan() {
    Plan p = schedule(replica, now, policy);
    for (const Start& s : p.starts) {
      JobPlaced placed;
      placed.job = s.job;
      placed.grants = s.grants;
      placed.partition = waiting.at(s.job).key.partition;
      const auto limit = waiting.at(s.job).key.time_limit;
      if (limit) placed.ends_by = now + *limit;
      waiting.erase(s.job);
      replica.apply(JobUnqueued{s.job});
      replica.apply(placed);
      running[s.job] = placed;
    }
    check();
    return p;
  }
  void end(JobId job) {
    for (const NodeGrant& g : running.at(job).grants) replica.apply(NodeReleased{job, g.node});
    running.erase(job);
  }
  void cut_by_hand(std::vector<MigSlice> slices) {
    nodes_[0].devices[0].slices = std::move(slices);
    replica.apply(nodes_[0]);
  }
  [[nodiscard]] const MigProfile& profile(const std::string& name) const {
    return *std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                         [&](const MigProfile& p) { return p.name == name; });
  }

  // Checks by the rules of the geometry alone.
  void check() const {
    std::map<std::tuple<NodeId, std::uint16_t, std::uint16_t>, std::pair<PartitionId, DevicePart>>
        parts;  // the parts that are used of each slice, by its place
    std::map<std::pair<NodeId, std::uint16_t>, std::pair<std::uint64_t, std::uint32_t>> used;
    for (const auto& [id, job] : running)
      for (const NodeGrant& g : job.grants)
        for (const GpuGrant& d : g.devices) {
          REQUIRE(d.profile);
          const auto p = std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                                      [&](const MigProfile& m) { return m.id == *d.profile; });
          REQUIRE(p != geometry.profiles.end());
          REQUIRE(std::find(p->starts.begin(), p->starts.end(), d.start) != p->starts.end());
          if (d.part()) {
            REQUIRE(d.thousandths > GpuThousandths{});
            auto& [tenant, sum] = parts[{g.node, d.gpu, d.start}];
            sum += d.of_slice;
            REQUIRE(sum <= kWholeDevice);
            REQUIRE((sum == d.of_slice || tenant == job.partition));
            tenant = job.partition;
            if (sum > d.of_slice) continue;  // the place is in use already
          }
          auto& [mask, compute] = used[{g.node, d.gpu}];
          const std::uint64_t own = ((std::uint64_t{1} << p->memory_slices) - 1) << d.start;
          REQUIRE((mask & own) == 0);
          mask |= own;
          compute += p->compute_slices;
          REQUIRE(compute <= geometry.compute_slices);
        }
    REQUIRE(replica.audit() == "");
  }

  MigGeometry geometry = h100_geometry();
  Policy policy;
  Replica replica;
  Instant now = kStart;
  std::map<JobId, JobQueued> waiting;
  std::map<JobId, JobPlaced> running;

 private:
  std::vector<NodeChanged> nodes_;
  PartitionChanged partition_;
  std::uint64_t last_ = 0;
};

const Verdict* verdict_of(const Plan& plan, JobId job) {
  for (const ClassVerdict& v : plan.verdicts)
    if (v.head == job) return &v.of_head;
  return nullptr;
}

TEST_CASE("a GPU that is emptied for a large slice takes short jobs, and no long ones") {
  Cluster c(1, 2);
  std::vector<JobId> small;
  for (int i = 0; i < 14; ++i) small.push_back(c.submit("1g.10gb", 1, hours(1 + i / 7)));
  CHECK(c.plan().starts.size() == 14);
  const JobId large = c.submit("7g.80gb", 1, hours(1));
  const Plan first = c.plan();
  REQUIRE(verdict_of(first, large) != nullptr);
  CHECK(verdict_of(first, large)->reason == Reason::mig_repartition);
  CHECK(verdict_of(first, large)->a == (kStart + hours(1)).us);
  CHECK(verdict_of(first, large)->b == 0);
  CHECK(verdict_of(first, large)->subject == "n0");
  c.now = c.now + minutes(10);
  c.end(small[0]);  // the job was on GPU 0, where the place is now kept free
  const JobId longer = c.submit("1g.10gb", 1, hours(3));
  const JobId quick = c.submit("1g.10gb", 1, minutes(30));
  c.plan();
  CHECK(c.running.contains(quick));
  CHECK(c.waiting.contains(longer));
  for (int i = 1; i < 7; ++i) c.end(small[static_cast<std::size_t>(i)]);
  c.end(quick);
  c.plan();
  REQUIRE(c.running.contains(large));
  CHECK(c.running.at(large).grants[0].devices[0].gpu == 0);
}

TEST_CASE("a job gets slices on several nodes at once") {
  Cluster c(3, 2);
  const JobId gang = c.submit("3g.40gb", 2, hours(1), 3);
  c.plan();
  REQUIRE(c.running.contains(gang));
  CHECK(c.running.at(gang).grants.size() == 3);
  for (const NodeGrant& g : c.running.at(gang).grants) CHECK(g.devices.size() == 2);
  const JobId second = c.submit("4g.40gb", 2, hours(1), 3);
  c.plan();
  CHECK(c.waiting.contains(second));
  c.end(gang);
  c.plan();
  CHECK(c.running.contains(second));
}

// The nodes have 64 cores here.
TEST_CASE(
    "a job without a number of nodes gets the fewest that hold its tasks, with slices on each") {
  Cluster c(3, 1);
  const JobId few = c.submit_tasks("1g.10gb", 2, hours(1), 10);
  const JobId many = c.submit_tasks("3g.40gb", 1, hours(2), 100);
  c.plan();
  REQUIRE(c.running.contains(few));
  CHECK(c.running.at(few).grants.size() == 1);
  CHECK(c.running.at(few).grants[0].devices.size() == 2);
  REQUIRE(c.running.contains(many));
  CHECK(c.running.at(many).grants.size() == 2);
  for (const NodeGrant& g : c.running.at(many).grants) CHECK(g.devices.size() == 1);
  // The job needs a slice on each of two nodes, and only one node has one free. The job waits, and
  // the plan tells why.
  const JobId blocked = c.submit_tasks("7g.80gb", 1, hours(1), 65);
  const Plan plan = c.plan();
  REQUIRE(c.waiting.contains(blocked));
  CHECK(verdict_of(plan, blocked) != nullptr);
  c.end(many);
  c.now = c.now + minutes(1);
  c.plan();
  REQUIRE(c.running.contains(blocked));
  CHECK(c.running.at(blocked).grants.size() == 2);
}

TEST_CASE("on a GPU that was cut by hand only existing slices are used") {
  Cluster c(1, 1, true);
  const JobId job = c.submit("2g.20gb", 1, hours(1));
  c.plan();
  CHECK(c.waiting.contains(job));
  c.cut_by_hand({{c.profile("2g.20gb").id, 2, 1, 0, "MIG-a"}});
  c.plan();
  REQUIRE(c.running.contains(job));
  CHECK(c.running.at(job).grants[0].devices[0].start == 2);
  const JobId other = c.submit("1g.10gb", 1, hours(1));
  c.plan();
  CHECK(c.waiting.contains(other));
}

TEST_CASE("parts of a slice go to one tenant only, and the slice is free after its last part") {
  Cluster c(1, 1);
  c.share();
  const JobId half = c.submit_part("3g.40gb", 500, hours(1));
  const JobId third = c.submit_part("3g.40gb", 300, hours(1));
  const JobId other = c.submit_part("3g.40gb", 100, hours(1), 1);
  c.plan();
  REQUIRE(c.running.contains(half));
  REQUIRE(c.running.contains(third));
  REQUIRE(c.running.contains(other));
  const auto device = [&](JobId job) { return c.running.at(job).grants[0].devices.at(0); };
  CHECK(device(half).start == device(third).start);
  CHECK(device(half).start != device(other).start);
  CHECK(device(half).thousandths == GpuThousandths{464 / 2});
  CHECK(device(third).of_slice == DevicePart{300});
  // 200 thousandths are left of one slice, 900 of the other tenant's, and there is no third slice.
  const JobId more = c.submit_part("3g.40gb", 300, hours(1));
  const JobId fits = c.submit_part("3g.40gb", 200, hours(1));
  c.plan();
  CHECK(c.waiting.contains(more));
  CHECK(c.running.contains(fits));
  // The slice is in use until its last part is given back; then any job may get it.
  const JobId whole = c.submit("3g.40gb", 1, hours(1));
  c.end(half);
  c.end(fits);
  c.plan();
  CHECK(c.running.contains(more));
  CHECK(c.waiting.contains(whole));
  c.end(third);
  c.plan();
  CHECK(c.waiting.contains(whole));
  c.end(more);
  c.plan();
  CHECK(c.running.contains(whole));
}

// A slice of an H100 counts as its share of the compute slices or of the memory, whichever is more.
TEST_CASE("a slice is charged to the quota by its weight, and starts while enough quota is left") {
  Cluster c(1, 4);
  c.limit_to(1);
  std::vector<JobId> small;
  for (int i = 0; i < 8; ++i) small.push_back(c.submit("1g.10gb", 1, hours(1)));
  CHECK(c.plan().starts.size() == 7);
  CHECK(c.waiting.size() == 1);
  for (int i = 0; i < 7; ++i) c.end(small[static_cast<std::size_t>(i)]);
  c.plan();
  CHECK(c.waiting.empty());
  c.end(small[7]);
  const JobId two = c.submit("3g.40gb", 2, hours(1));  // 928 thousandths
  c.plan();
  CHECK(c.running.contains(two));
  c.end(two);
  const JobId all = c.submit("7g.80gb", 1, hours(1));
  c.plan();
  CHECK(c.running.contains(all));
  const JobId more = c.submit("1g.10gb", 1, hours(1));
  const Plan full = c.plan();
  REQUIRE(verdict_of(full, more) != nullptr);
  CHECK(verdict_of(full, more)->reason == Reason::tenant_quota);
  c.end(all);
  c.plan();
  CHECK(c.running.contains(more));
}

TEST_CASE(
    "a GPU that is emptied for a large slice gets no part that would make a slice last longer") {
  Cluster c(1, 1);
  c.share();
  const JobId first = c.submit_part("3g.40gb", 100, hours(1));
  const JobId second = c.submit("4g.40gb", 1, hours(1));
  c.plan();
  REQUIRE(c.running.contains(second));
  const JobId large = c.submit("7g.80gb", 1, hours(1));
  c.plan();
  REQUIRE(c.waiting.contains(large));
  c.now = c.now + minutes(10);
  const JobId longer = c.submit_part("3g.40gb", 100, hours(1));
  const JobId quick = c.submit_part("3g.40gb", 100, minutes(30));
  c.plan();
  CHECK(c.waiting.contains(longer));
  CHECK(c.running.contains(quick));
  for (const JobId job : {first, second, quick}) c.end(job);
  c.plan();
  CHECK(c.running.contains(large));
}

TEST_CASE("random parts of slices never mix tenants or exceed a slice, and large jobs start") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Cluster c(3, 2);
    c.share();
    const auto length = [&] { return minutes(1 + static_cast<std::int64_t>(random() % 120)); };
    const char* names[] = {"1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb"};
    const auto draw = [&] {
      if (random() % 3 == 0) return c.submit(names[random() % 4], 1 + random() % 2, length());
      return c.submit_part(names[random() % 4], 1 + random() % 999, length(), random() % 2);
    };
    for (int i = 0; i < 60; ++i) draw();
    c.plan();
    const JobId large = c.submit("7g.80gb", 1 + seed % 2, length());
    int turns = 0;
    for (; turns < 600 && c.waiting.contains(large); ++turns) {
      c.now = c.now + minutes(1);
      draw();
      std::vector<JobId> ends;
      for (const auto& [id, job] : c.running)
        if (*job.ends_by <= c.now || random() % 40 == 0) ends.push_back(id);
      for (const JobId id : ends) c.end(id);
      c.plan();
    }
    CHECK(turns < 600);
    std::vector<JobId> all;  // at the end nothing may be left behind
    for (const auto& [id, job] : c.running) all.push_back(id);
    for (const JobId id : all) c.end(id);
    CHECK(c.replica.audit() == "");
    for (const auto& [id, job] : std::map(c.waiting)) {
      c.replica.apply(JobUnqueued{id});
      c.waiting.erase(id);
    }
    const JobId everything = c.submit("7g.80gb", 2, hours(1), 3);
    c.plan();
    CHECK(c.running.contains(everything));
  }
}

TEST_CASE("random jobs get legal slices, and a large job among small ones has its turn") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Cluster c(3, 2);
    const bool limits = seed % 3 != 0;
    const auto length = [&]() -> std::optional<Duration> {
      if (!limits) return std::nullopt;
      return minutes(1 + static_cast<std::int64_t>(random() % 120));
    };
    const char* names[] = {"1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb"};
    for (int i = 0; i < 60; ++i) c.submit(names[random() % 2], 1, length());
    c.plan();
    const JobId large = c.submit("7g.80gb", 1 + seed % 2, length());
    int turns = 0;
    for (; turns < 600 && c.waiting.contains(large); ++turns) {
      c.now = c.now + minutes(1);
      c.submit(names[random() % 5], 1 + random() % 2, length(), 1 + random() % 2);
      std::vector<JobId> ends;
      for (const auto& [id, job] : c.running)
        if (job.ends_by ? *job.ends_by <= c.now : random() % 20 == 0) ends.push_back(id);
      for (const JobId id : ends) c.end(id);
      c.plan();
    }
    CHECK(turns < 600);
  }
}

}  // namespace
}  // namespace gantry::sched::slices_test
