#include "ctld/core/services/replica_job.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/job_submit.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// Among waiting replicas of one tenant, those of services with tighter latency objectives go first.
std::int32_t nice_of(Duration target) {
  if (target <= milliseconds(10)) return 0;
  return target <= milliseconds(100) ? 50 : 100;
}

void fill_shape(const tenancy::Service& service, std::uint64_t revision,
                const tenancy::ServiceShape& from, JobShape& to) {
  to.cpus_per_task = from.cpus;
  to.memory_per_node = from.memory;
  to.gpus_per_node = from.gpus;
  to.gpu_slice = from.gpu_slice;
  to.gpu_share = from.gpu_share;
  to.gpu_models = from.gpu_models;
  if (!service.scale.spare_node) return;
  // About half of the replicas on one node at most, so that a lost node leaves half; two nodes are
  // enough for all. Replicas of another revision do not count, because they would hinder a rollout.
  to.anti_affinity = fmt::format("service-{}-{}", service.name, revision);
  to.anti_affinity_level = "node";
  to.anti_affinity_most = (service.scale.most + 1) / 2;
}

}  // namespace

Identity owner_of(const ReplicaSet& set) {
  return Identity{set.owner, proto::Role::user, {}, set.groups, {}};
}

proto::SubmitJob replica_job(const tenancy::Service& service, const ReplicaSet& set,
                             std::uint32_t shape, const State& state) {
  const tenancy::ServiceVersion& v = set.what;
  const auto rung = std::min<std::size_t>(shape, v.shapes.size() - 1);
  proto::SubmitJob out;
  JobSpec& spec = out.spec;
  spec.name = service.name;
  spec.partition = service.partition.empty() ? service.tenant : service.partition;
  spec.account = service.project.empty() ? service.tenant : service.project;
  spec.priority_class = service.priority_class;
  spec.nice = nice_of(service.target);
  spec.comment = fmt::format("replica of service {}, version {}", service.name, v.name);
  spec.requeue = false;  // the controller makes another replica instead
  spec.work_type = WorkType::inference;
  spec.labels["service"] = service.name;
  spec.labels["version"] = v.name;
  fill_shape(service, set.revision, v.shapes[rung], spec.shape);
  spec.work_dir = v.directory.empty() ? "/" : v.directory;
  spec.std_out = v.directory.empty() ? "/dev/null" : service.name + "-%j.out";
  spec.container.image = v.image;
  for (const std::string& name : v.secrets) spec.secrets.push_back({name, 0, ""});
  for (const std::string& use : v.datasets) {
    const bool write = use.ends_with(":rw");
    spec.datasets.push_back({write ? use.substr(0, use.size() - 3) : use, write});
  }
  spec.replica = ReplicaOf{service.name, v.name, set.revision, static_cast<std::uint32_t>(rung),
                           static_cast<std::uint16_t>(set.port)};
  const Partition* queue = state.partition_named(spec.partition);
  const bool limited =
      queue != nullptr && queue->declared != nullptr && queue->declared->max_time.has_value();
  if (!limited) spec.unlimited_time = true;
  spec.submit_line = "service " + service.name;
  out.script = "#!/bin/sh\n" + v.command + "\n";
  out.environment = v.environment;
  out.environment["PORT"] = std::to_string(set.port);
  out.environment["GANTRY_SERVICE"] = service.name;
  out.environment["GANTRY_SERVICE_VERSION"] = v.name;
  out.environment.emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  out.environment.emplace("HOME", set.owner.home);
  out.environment.emplace("USER", set.owner.user);
  return out;
}

}  // namespace gantry::core
