// A service's own quota comes back from batch jobs that borrowed it: within the time that these
// have to end, the time that a replica takes to start, and the few seconds in which the need is
// seen.
#include <doctest/doctest.h>

#include "common/proto/gate.h"
#include "common/proto/job_submit.h"
#include "tests/services/cluster.h"

namespace {

using namespace gantry;
using services_test::Cluster;
using services_test::ClusterSize;

constexpr std::uint32_t kCores = 32;  // cores of the cluster, half of them the service's
constexpr std::uint32_t kNeeded = 10;
constexpr Duration kStart = seconds(4);
constexpr std::int64_t kGrace = 10, kSeen = 5;  // seconds

tenancy::Tenant tenant(const std::string& name, const std::string& user, tenancy::Role role) {
  tenancy::Tenant t;
  t.name = name;
  t.cohort = "org";
  tenancy::QuotaLine& line = t.quota.emplace_back();
  line.resource = Resource::cpu;
  line.nominal = kCores / 2 * 1000;
  t.grants.push_back({role, user, {}});
  return t;
}

std::vector<tenancy::Document> documents() {
  std::vector<tenancy::Document> out;
  tenancy::Cohort cohort;
  cohort.name = "org";
  out.emplace_back(cohort);
  tenancy::PriorityClass normal;
  normal.name = "normal";
  normal.value = 500;
  normal.is_default = true;
  normal.grace = seconds(kGrace);
  out.emplace_back(normal);
  out.emplace_back(tenant("serve", "owner", tenancy::Role::tenant_admin));
  out.emplace_back(tenant("batch", "bob", tenancy::Role::user));
  tenancy::Service s;
  s.name = "score";
  s.tenant = "serve";
  s.target = milliseconds(100);
  s.route.concurrency = 1;
  s.drain = seconds(2);
  s.scale.least = 1;
  s.scale.most = kCores / 2;
  s.scale.down_after = seconds(5);
  tenancy::ServiceVersion& v = s.versions.emplace_back();
  v.name = "v1";
  v.command = "serve";
  tenancy::ServiceShape& shape = v.shapes.emplace_back();
  shape.name = "small";
  shape.memory = 64 << 20;
  shape.service_time = milliseconds(20);
  out.emplace_back(std::move(s));
  return out;
}

class Site {
 public:
  Site() : cluster_({2, kCores / 2, true, kStart}, documents()) {}

  void second(std::uint64_t rate) {
    proto::GateSample sample;
    sample.tenant = "serve";
    sample.service = "score";
    sample.version = "v1.1";
    sample.span = seconds(1);
    sample.requests = rate;
    cluster_.second({sample}, {{"score", milliseconds(20)}});
    // Batch jobs without end. Those that were preempted often wait a while until they may start
    // again.
    std::uint32_t waiting = 0;
    cluster_.core().state().jobs.walk(JobId{}, [&](const core::Job& job) {
      if (job.phase == Phase::queued && job.attempt == Attempt{} &&
          cluster_.core().state().names.text(job.name) == "train")
        ++waiting;
      return true;
    });
    for (; waiting < 4; ++waiting) submit();
  }
  [[nodiscard]] std::uint32_t ready() const {
    const auto all = cluster_.ready();
    const auto it = all.find("score");
    return it == all.end() ? 0 : it->second;
  }
  [[nodiscard]] std::uint32_t held() const {
    const auto all = cluster_.held();
    const auto it = all.find("score");
    return it == all.end() ? 0 : it->second;
  }
  [[nodiscard]] std::uint32_t free_cores() const {
    std::uint32_t taken = 0;
    for (const core::Node& node : cluster_.core().state().nodes) taken += node.cpus_taken;
    return kCores - taken;
  }

 private:
  void submit() {
    proto::SubmitJob m;
    m.spec.name = "train";
    m.spec.partition = "batch";
    m.spec.work_dir = "/";
    m.spec.shape.memory_per_node = 64 << 20;
    m.script = "#!/bin/sh\nsleep 1000000\n";
    m.spec.unlimited_time = true;
    (void)cluster_.submit("bob", 1001, std::move(m));
  }
  Cluster cluster_;
};

TEST_CASE("what batch jobs borrowed of a service comes back in time, spike after spike") {
  const int spikes = 1000;
  Site site;
  for (int i = 0; i < 60; ++i) site.second(10);
  std::int64_t slowest = 0;
  int late = 0;
  for (int spike = 0; spike < spikes; ++spike) {
    for (int i = 0; i < 400 && (site.held() > 2 || site.free_cores() > 0); ++i) site.second(10);
    REQUIRE(site.held() <= 2);
    REQUIRE(site.free_cores() == 0);  // all that the service does not use is lent
    std::int64_t took = 0;
    while (site.ready() < kNeeded && took < 200) {
      site.second(450);  // 9 replicas are busy, and the objective needs one or two more
      ++took;
    }
    slowest = std::max(slowest, took);
    late += took > kGrace + kStart.us / 1'000'000 + kSeen ? 1 : 0;
  }
  MESSAGE("slowest of " << spikes << " spikes: " << slowest << " s");
  CHECK(late == 0);
}

}  // namespace
