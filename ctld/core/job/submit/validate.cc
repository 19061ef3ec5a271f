// The checks of a submit, part by part; see validate.h.
#include "ctld/core/job/submit/validate.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/job/older_given.h"
#include "common/limits.h"
#include "common/proto/job_submit.h"
#include "common/text/printable.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/job/submit/node_range.h"
#include "ctld/core/job/submit/rates.h"
#include "ctld/core/job/submit/rules.h"
#include "ctld/core/job/submit/security.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/network.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/reservations.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/tenancy/storage.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/view_memory.h"
#include "ctld/sched/gpu/mig_node.h"

namespace gantry::core {
namespace {

// Together the limits keep a spec far below what one message holds, because it has to fit, with
// script and environment, into the order that starts the job.
constexpr std::size_t kMaxArrayRanges = 10'000;  // a request may name this many as well

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<void> check_number(std::string_view what, std::int64_t n, std::int64_t low,
                          std::int64_t high) {
  if (n >= low && n <= high) return {};
  return bad(fmt::format("{} must be {} to {}, not {}", what, low, high, n));
}

Result<void> check_path(std::string_view what, std::string_view path, bool absolute) {
  if (path.size() > kMaxPathBytes)
    return fail(ErrorCode::limit_exceeded, fmt::format("{} has {} bytes; at most {} are allowed",
                                                       what, path.size(), kMaxPathBytes));
  if (path.find('\0') != std::string_view::npos || path.find('\n') != std::string_view::npos)
    return bad(fmt::format("{} must not contain a zero byte or a line break", what));
  if (absolute && !path.starts_with('/'))
    return bad(fmt::format("{} must be an absolute path, not \"{}\"", what, path));
  return {};
}

Result<void> check_script(const Context& ctx, const proto::SubmitJob& submit) {
  if (submit.spec.kind == JobKind::allocation) {
    if (submit.script.empty()) return {};
    return bad("an allocation has no script");
  }
  if (submit.script.size() > ctx.config.controller.max_script_bytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the script has {} bytes; at most {} are allowed", submit.script.size(),
                            ctx.config.controller.max_script_bytes));
  if (!submit.script.starts_with("#!"))
    return bad("the script must begin with #! and the path of an interpreter, as in #!/bin/sh");
  if (submit.script.find('\0') != Bytes::npos) return bad("the script contains a zero byte");
  return {};
}

Result<void> check_environment(const proto::SubmitJob& submit) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : submit.environment) {
    bytes += name.size() + value.size() + 2;
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return bad("environment variables need a name without \"=\" and zero bytes");
    if (std::any_of(name.begin(), name.end(),
                    [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      return bad("the name of an environment variable must not contain control characters");
    if (value.find('\0') != std::string::npos)
      return bad(fmt::format("environment variable {} contains a zero byte", name));
  }
  if (bytes > kMaxEnvironmentBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the environment has {} bytes; at most {} are allowed", bytes,
                            kMaxEnvironmentBytes));
  return {};
}

}  // namespace

Result<void> check_tres(const AskedTres& tres) {
  for (const std::string* word : {&tres.per_job, &tres.per_node, &tres.per_socket, &tres.per_task,
                                  &tres.cpus, &tres.memory, &tres.bind, &tres.freq})
    if (auto r = check_text("what is told of the GPUs asked for", *word, kMaxTresBytes); !r)
      return r;
  return {};
}

namespace {

Result<void> check_words(JobSpec& spec) {
  if (spec.name.empty()) spec.name = spec.kind == JobKind::batch ? "batch" : "interactive";
  if (auto r = check_text("the job name", spec.name, kMaxNameBytes); !r) return r;
  if (auto r = check_text("the account", spec.account, kMaxAccountBytes); !r) return r;
  if (auto r = check_text("the comment", spec.comment, kMaxCommentBytes); !r) return r;
  if (auto r = check_text("the submit host", spec.submit_host, kMaxHostName); !r) return r;
  // The submit line is only shown, so it is cut and made printable instead of being refused.
  if (spec.submit_line.size() > kMaxSubmitLineBytes) spec.submit_line.resize(kMaxSubmitLineBytes);
  spec.submit_line = printable(spec.submit_line);
  std::size_t bytes = 0;
  for (const std::string& arg : spec.script_args) {
    bytes += arg.size() + 1;
    if (arg.find('\0') != std::string::npos) return bad("a script argument contains a zero byte");
  }
  if (spec.script_args.size() > kMaxScriptArgs || bytes > kMaxArgBytes)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("{} script arguments with {} bytes; at most {} with {} bytes are allowed",
                    spec.script_args.size(), bytes, kMaxScriptArgs, kMaxArgBytes));
  if (auto r = check_text("the wckey", spec.wckey, kMaxWckeyBytes); !r) return r;
  if (auto r = check_tres(spec.given.tres); !r) return r;
  return check_older_given(spec.older_given);
}

Result<void> check_mail(const Context& ctx, const JobSpec& spec) {
  if (!spec.mail.to.empty())
    if (auto r = check_mail_addresses(spec.mail.to); !r) return r;
  std::string warning = mail_warning(ctx, spec);
  if (warning.empty() || spec.mail.if_possible) return {};
  return fail(ErrorCode::unsupported, std::move(warning));
}

Result<void> check_paths(const JobSpec& spec) {
  if (auto r = check_path("the working directory", spec.work_dir, true); !r) return r;
  if (auto r = check_path("standard input", spec.std_in, false); !r) return r;
  if (auto r = check_path("standard output", spec.std_out, false); !r) return r;
  if (auto r = check_path("standard error", spec.std_err, false); !r) return r;
  if (auto r = check_path("the checkpoint file", spec.checkpoint_file, false); !r) return r;
  if (!spec.submit_dir.empty())
    if (auto r = check_path("the directory of the submit", spec.submit_dir, true); !r) return r;
  if (!spec.script_path.empty())
    if (auto r = check_path("the path of the script", spec.script_path, true); !r) return r;
  const ContainerSpec& c = spec.container;
  if (auto r = check_path("the container image", c.image, false); !r) return r;
  if (!c.work_dir.empty())
    if (auto r = check_path("the container's working directory", c.work_dir, true); !r) return r;
  if (c.mounts.size() > kMaxMounts)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("{} container mounts; at most {} are allowed", c.mounts.size(), kMaxMounts));
  for (const std::string& mount : c.mounts)
    if (auto r = check_path("a container mount", mount, false); !r) return r;
  return {};
}

Result<void> check_parts(const JobShape& s) {
  if (auto r = check_number("thousandths of a GPU", s.gpu_share, 0, kWholeDevice.value() - 1); !r)
    return r;
  if (auto r = check_number("shards of a GPU", s.gpu_shards, 0, 1000); !r) return r;
  if (s.gpu_share + s.gpu_shards > 0 && s.gpus_per_node > 0)
    return bad("a part of a GPU and whole GPUs or slices exclude each other");
  if (s.gpu_share > 0 && s.gpu_shards > 0)
    return bad("a part of a GPU is given in shards or as a fraction, not both");
  return {};
}

// The level "switch" (sbatch --switches) means the narrowest level of the site's topology, unless
// the topology has a level of that name. Without a topology, all nodes are on one switch.
void name_switch(const Context& ctx, JobShape& shape) {
  if (shape.topology == TopologyWish::none || shape.topology_level != "switch") return;
  const sched::TenancyPtr& view = ctx.state.tenancy.compiled.view;
  if (!view || view->levels.empty()) {
    shape.topology = TopologyWish::none;
    shape.topology_level.clear();
    return;
  }
  const bool named = std::any_of(view->levels.begin(), view->levels.end(),
                                 [](const sched::TopologyLevel& l) { return l.name == "switch"; });
  if (!named) shape.topology_level = view->levels.back().name;
}

// Turns shards into thousandths, by the nodes of the partition; all shards of a GPU are a whole
// GPU.
Result<void> count_shards(const Context& ctx, const Partition& partition, JobShape& shape) {
  if (shape.gpu_shards == 0) return {};
  std::uint32_t each = 0;
  for (const NodeId id : partition.nodes) {
    const NodeConfig* node = ctx.state.node(id).declared;
    if (node == nullptr || node->gpu_shards == 0) continue;
    if (each != 0 && each != node->gpu_shards)
      return bad(
          fmt::format("nodes of partition {} have {} and {} shards in a GPU, so that a "
                      "number of them says nothing; ask for a fraction, as --gpus=0.25",
                      partition.name, each, node->gpu_shards));
    each = node->gpu_shards;
  }
  if (each == 0)
    return fail(ErrorCode::never_fits,
                fmt::format("no node of partition {} has shards of GPUs", partition.name));
  if (shape.gpu_shards > each)
    return fail(ErrorCode::never_fits,
                fmt::format("{} shards asked, but a job gets shards of one GPU, which has {} in "
                            "partition {}",
                            shape.gpu_shards, each, partition.name));
  if (shape.gpu_shards == each)
    shape.gpus_per_node = 1;
  else
    shape.gpu_share = shape.gpu_shards * static_cast<std::uint32_t>(kWholeDevice.value()) / each;
  return {};
}

Result<void> check_gres(const JobShape& s) {
  for (std::size_t i = 0; i < s.gres.size(); ++i) {
    const GresCount& g = s.gres[i];
    if (auto r = check_text("the name of a resource", g.name, kMaxNameBytes); !r) return r;
    if (auto r = check_number("the number of " + g.name, g.count, 1, kMostGresCount); !r) return r;
    if (i > 0 && s.gres[i - 1].name >= g.name)
      return bad("resources by name are sorted, each once");
  }
  return {};
}

Result<void> check_license_counts(const JobShape& s) {
  for (std::size_t i = 0; i < s.licenses.size(); ++i) {
    const GresCount& g = s.licenses[i];
    if (auto r = check_text("the name of a licence", g.name, kMaxNameBytes); !r) return r;
    if (auto r = check_number("the number of " + g.name, g.count, 1, kMostLicenses); !r) return r;
    if (i > 0 && s.licenses[i - 1].name >= g.name)
      return bad("licences are sorted by name, each once");
  }
  return {};
}

Result<void> check_shape(const JobShape& s) {
  if (auto r = check_number("the number of nodes", s.min_nodes, 1, kMaxJobNodes); !r) return r;
  if (auto r = check_number("the greatest number of nodes", s.max_nodes, s.min_nodes, kMaxJobNodes);
      !r)
    return r;
  if (auto r = check_number("the number of tasks", s.tasks, 1, kMaxJobTasks); !r) return r;
  if (auto r = check_number("cores per task", s.cpus_per_task, 1, kMaxCpusPerTask); !r) return r;
  // A number that no node has is no error of form: the job is told that it fits on no node.
  if (auto r = check_number("the least number of cores on a node", s.min_cpus_per_node, 0,
                            100 * kMaxCpusPerTask);
      !r)
    return r;
  if (s.tasks_per_node)
    if (auto r = check_number("tasks per node", *s.tasks_per_node, 1, kMaxJobTasks); !r) return r;
  if (s.memory_per_node && s.memory_per_cpu)
    return bad("memory per node and memory per core exclude each other");
  if (s.memory_per_node)
    if (auto r = check_number("memory per node in bytes", *s.memory_per_node, 0, kMaxMemoryBytes);
        !r)
      return r;
  if (s.memory_per_cpu)
    if (auto r = check_number("memory per core in bytes", *s.memory_per_cpu, 1, kMaxMemoryBytes);
        !r)
      return r;
  if (auto r = check_number("scratch per node in bytes", s.scratch_per_node, 0, kMaxMemoryBytes);
      !r)
    return r;
  if (auto r = check_number("GPUs per node", s.gpus_per_node, 0, 1024); !r) return r;
  if (!s.gpu_slice.empty() && s.gpu_shards > 0)
    return bad("shards are parts of whole GPUs; of a slice ask for a fraction, as mig:3g.40gb:0.5");
  if (!s.gpu_slice.empty() && (s.gpus_per_node + s.gpu_share == 0 || s.gpu_slice.size() > 32 ||
                               sched::compute_slices_of(s.gpu_slice) == 0))
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a MIG profile with a number of slices, as 1g.10gb",
                            s.gpu_slice.substr(0, 32)));
  if (auto r = check_parts(s); !r) return r;
  if (auto r = check_gres(s); !r) return r;
  if (auto r = check_license_counts(s); !r) return r;
  if (s.required_nodes.size() > kMaxJobNodes || s.excluded_nodes.size() > kMaxJobNodes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("at most {} nodes may be named", kMaxJobNodes));
  if (auto r = check_text("the anti-affinity key", s.anti_affinity, kMaxNameBytes); !r) return r;
  if (auto r = check_number("the number of one anti-affinity key in a domain", s.anti_affinity_most,
                            1, kMaxJobNodes);
      !r)
    return r;
  return check_text("the constraint", s.constraint, kMaxConstraintBytes);
}

Result<void> check_nodes(const Context& ctx, const Partition& partition, const JobShape& shape) {
  for (const auto* list : {&shape.required_nodes, &shape.excluded_nodes})
    for (const std::string& name : *list)
      if (ctx.state.node_named(name) == nullptr)
        return fail(ErrorCode::not_found, fmt::format("node \"{}\" is not in this cluster", name));
  for (const std::string& name : shape.required_nodes) {
    const NodeId id = ctx.state.node_named(name)->id;
    if (std::find(partition.nodes.begin(), partition.nodes.end(), id) == partition.nodes.end())
      return bad(fmt::format("node {} is not in partition {}", name, partition.name));
  }
  return {};
}

Result<void> check_array(const Context& ctx, const ArraySpec& array) {
  if (array.ranges.empty()) return bad("an array needs at least one index");
  if (array.ranges.size() > kMaxArrayRanges)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the array has {} ranges of indexes; at most {} are allowed",
                            array.ranges.size(), kMaxArrayRanges));
  std::uint64_t count = 0;
  std::optional<std::uint32_t> before;
  for (const IndexRange& r : array.ranges) {
    if (r.step == 0 || r.first > r.last || (before && r.first <= *before))
      return bad("array ranges must ascend without overlap, each with a step of 1 or more");
    if (r.last > kMaxArrayIndex)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("array index {} is above {}", r.last, kMaxArrayIndex));
    before = r.last;
    count += (r.last - r.first) / r.step + 1;
  }
  const std::uint32_t most = std::min(kMaxArrayTasks, ctx.config.controller.max_array_tasks);
  if (count > most)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the array has {} tasks; at most {} are allowed", count, most));
  if (array.max_running == 0u) return bad("an array's %LIMIT must be 1 or more");
  return {};
}

Result<void> check_policy(const Context& ctx, const Identity& who, const JobSpec& spec,
                          const Partition& partition) {
  if (spec.nice < -kMaxNice || spec.nice > kMaxNice)
    return bad(fmt::format("nice must be {} to {}, not {}", -kMaxNice, kMaxNice, spec.nice));
  if (!is_admin(who) && spec.nice < 0)
    return fail(ErrorCode::permission_denied,
                "only an administrator may give a negative nice value");
  if (!is_admin(who) && spec.priority && *spec.priority != 0)
    return fail(ErrorCode::permission_denied, "only an administrator may set a priority");
  if (spec.network == NetworkMode::host)
    if (auto r = check_host_network(ctx.state, partition); !r) return r;
  if (auto r = check_job_network(ctx.state, ctx.config.controller.job_networks, spec, partition);
      !r)
    return r;
  if (auto r = check_rates(spec); !r) return r;
  if (auto r = check_sharing(ctx.state, partition, spec.shape); !r) return r;
  if (spec.warn_signal) {
    if (auto r = check_number("the warning signal", spec.warn_signal->signal, 1, 64); !r) return r;
    if (auto r = check_number("seconds between warning and limit",
                              spec.warn_signal->before.seconds(), 0, 65535);
        !r)
      return r;
  }
  return {};
}

}  // namespace

std::string mail_warning(const Context& ctx, const JobSpec& spec) {
  const bool wanted = spec.mail.events && spec.mail.events->any();
  if (!wanted || !ctx.config.controller.mail_program.empty()) return {};
  return "--mail-type: no mail is sent here, as controller.mail_program is not set";
}

Result<void> check_text(std::string_view what, std::string_view text, std::size_t most) {
  if (text.size() > most)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} has {} bytes; at most {} are allowed", what, text.size(), most));
  return check_printable(what, text);
}

Result<void> check_partition_fit(Context& ctx, const Partition& partition, const JobShape& shape) {
  if (auto r = check_node_range(partition, shape); !r) return r;
  const std::size_t id = partition.id.value();
  const sched::TenancyPtr& view = ctx.state.tenancy.compiled.view;
  return ctx.rt.views->fits.check(shape, ctx.rt.views->partitions.at(id),
                                  ctx.rt.views->partition_nodes.at(id),
                                  view ? std::span<const sched::TopologyLevel>(view->levels)
                                       : std::span<const sched::TopologyLevel>());
}

namespace {
void tidy_nodes(JobShape& shape) {
  for (auto* list : {&shape.required_nodes, &shape.excluded_nodes}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

// The network mode of a job that names none.
NetworkMode usual_network(const Context& ctx, const Partition& partition) {
  if (partition.declared->host_network_by_default) return NetworkMode::host;
  const bool made =
      ctx.config.controller.job_networks && !without_job_networks(ctx.state, partition, {});
  return made ? NetworkMode::job : NetworkMode::loopback;
}
}  // namespace

Result<void> check_new_shape(Context& ctx, const Partition& partition, JobShape& shape) {
  if (auto r = check_shape(shape); !r) return r;
  tidy_nodes(shape);
  if (auto r = check_nodes(ctx, partition, shape); !r) return r;
  cap_nodes(partition, shape);
  return check_partition_fit(ctx, partition, shape);
}

namespace {
// The checks of a request that do not need its queue.
Result<void> check_request(Context& ctx, const Identity& who, proto::SubmitJob& submit) {
  JobSpec& spec = submit.spec;
  if (who.owner.uid == Uid{} && !ctx.config.noded.allow_root_jobs)
    return fail(ErrorCode::permission_denied,
                "jobs do not run as root here (noded.allow_root_jobs is off)");
  if (submit.request_id.size() > kMaxRequestIdBytes)
    return bad(fmt::format("a request id has at most {} bytes", kMaxRequestIdBytes));
  if (spec.het) return bad("whose component a job is, the controller says");
  spec.shape.io_per_node = spec.shape.net_per_node = 0;  // count_rates() sets them
  if (auto r = check_script(ctx, submit); !r) return r;
  if (auto r = check_environment(submit); !r) return r;
  if (auto r = check_words(spec); !r) return r;
  if (auto r = check_paths(spec); !r) return r;
  if (auto r = check_mail(ctx, spec); !r) return r;
  if (auto r = check_limits(spec.limits); !r) return r;
  if (auto r = check_labels(spec.labels); !r) return r;
  if (auto r = check_shape(spec.shape); !r) return r;
  const bool allocation = spec.kind == JobKind::allocation;
  if (spec.array && allocation) return bad("an allocation cannot be an array");
  if (spec.array)
    if (auto r = check_array(ctx, *spec.array); !r) return r;
  return {};
}
}  // namespace

Result<Resolved> validate(Context& ctx, const Identity& who, proto::SubmitJob& submit,
                          std::span<const Resolved> beside) {
  JobSpec& spec = submit.spec;
  TRY(check_request(ctx, who, submit));
  ASSIGN(queue, choose_queue(ctx, who, {spec.partition, spec.account}));
  const Partition* partition = *queue;
  spec.partition = partition->name;
  name_switch(ctx, spec.shape);
  TRY(count_shards(ctx, *partition, spec.shape));
  TRY(deal_gpus(ctx, *partition, spec.shape));
  TRY(allow_gpus(ctx.state, who, *partition, spec.shape));
  std::uint64_t with_it = 0;  // what other parts of the submit ask of the tenant
  for (const Resolved& other : beside)
    with_it += tenant_of(ctx.state, ctx.state.partition(other.partition)) ==
               tenant_of(ctx.state, *partition);
  TRY(check_tenant(ctx, who, *partition, spec, submit.test_only, with_it));
  TRY(check_open(who, *partition, !spec.reservation.empty()));
  TRY(check_admission(ctx.state, who, *partition, {spec.account, spec.priority_class}));
  ASSIGN(limit, check_time_limit(*partition, spec.time_limit, spec.unlimited_time));
  Resolved out{partition->id, *limit};
  TRY(apply_rules(ctx, who, *partition, *limit, spec, out.warnings));
  if (partition->declared->exclusive_nodes) spec.shape.exclusive = true;
  spec.network_named =
      spec.network.has_value() || !spec.network_profile.empty() || spec.network_rate != 0;
  if (!spec.network) spec.network = usual_network(ctx, *partition);
  if (!spec.shape.anti_affinity.empty())  // so that no user can keep other users' jobs away
    spec.shape.anti_affinity = fmt::format("{}/{}", who.owner.user, spec.shape.anti_affinity);

  tidy_nodes(spec.shape);
  TRY(apply_security(ctx, who, *partition, spec, out.warnings));
  TRY(check_policy(ctx, who, spec, *partition));
  TRY(count_rates(ctx, *partition, spec));
  TRY(check_secrets(ctx, *partition, spec));
  TRY(check_datasets(ctx.state, *partition, spec.datasets));
  TRY(check_staging(ctx.state, *partition, spec));
  TRY(check_licenses(ctx.state, spec.shape));
  TRY(check_nodes(ctx, *partition, spec.shape));
  UseDemand use = demand_of_submit(ctx.state, who.owner, *partition, spec, *limit);
  if (!spec.time_limit && !spec.unlimited_time && !partition->declared->default_time)
    if (const auto wall = longest_wall(ctx.state, use))
      use.limit = *limit = std::min(limit->value_or(*wall), *wall);
  TRY(check_time_min(*limit, spec));
  // The reservation is checked before the deadline, which counts from the start of the reservation.
  if (!spec.reservation.empty())
    TRY(check_reservation(ctx, who, *partition, spec.shape, *limit, spec.reservation));
  TRY(check_times(ctx, spec, *limit));
  cap_nodes(*partition, spec.shape);
  TRY(check_partition_fit(ctx, *partition, spec.shape));
  out.time_limit = *limit;
  if (submit.test_only) return out;
  const std::uint64_t jobs = spec.array ? ArrayIndexes(spec.array->ranges).count() : 1;
  TRY(check_use_limits(ctx, use, jobs + beside.size()));
  return out;
}

}  // namespace gantry::core
