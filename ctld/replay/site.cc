#include "ctld/replay/site.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "common/proto/tenancy.h"
#include "common/text/hostlist.h"
#include "config/tenancy/files/load.h"
#include "config/values.h"
#include "ctld/replay/vary.h"
#include "ctld/sched/change.h"
#include "ctld/sched/policy.h"

namespace gantry::replay {
namespace {

constexpr std::uint32_t kMostNodes = 1'000'000;
constexpr std::uint32_t kMostPerNode = 65'535;  // the number of cores has 16 bits
constexpr std::uint32_t kPlannedAhead = 100;    // as in the controller

std::optional<std::uint32_t> number(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

// Reads "90x8gpu" or "1x100cpu"; nullopt if the text has another form.
std::optional<Result<Cluster>> short_form(const std::string& text) {
  const std::size_t x = text.find('x');
  const bool gpu = text.ends_with("gpu");
  if (x == std::string::npos || (!gpu && !text.ends_with("cpu")) || x + 4 > text.size())
    return std::nullopt;
  const std::string_view all(text);
  const auto nodes = number(all.substr(0, x), ~std::uint32_t{0});
  const auto each = number(all.substr(x + 1, text.size() - x - 4), ~std::uint32_t{0});
  if (!nodes || !each) return std::nullopt;
  if (*nodes == 0 || *nodes > kMostNodes)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("cluster {}: there can be 1 to {} nodes, not {}", text, kMostNodes, *nodes));
  if (*each == 0 || *each > kMostPerNode)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("cluster {}: a node can have 1 to {} {}, not {}; take more nodes that "
                            "are smaller",
                            text, kMostPerNode, gpu ? "GPUs" : "cores", *each));
  Cluster cluster;
  cluster.name = text;
  const std::size_t width = std::to_string(*nodes).size();
  for (std::uint32_t n = 1; n <= *nodes; ++n) {
    NodeConfig node;
    node.name = fmt::format("n{:0{}}", n, width);
    node.cpus = *each;
    node.gpus = gpu ? *each : 0;
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

std::vector<proto::NodesAlike> alike(const Cluster& cluster) {
  std::vector<proto::NodesAlike> out;
  for (const NodeConfig& node : cluster.nodes) {
    Resources each;
    each.set<Resource::cpu>(thousandths_of(Cores{node.cpus}));
    each.set<Resource::memory>(ByteCount{node.memory});
    each.set<Resource::gpu>(thousandths_of(Gpus{node.gpus}));
    each.set<Resource::scratch>(ByteCount{node.scratch});
    if (!out.empty() && out.back().each == each && out.back().features == node.features &&
        out.back().gpu_model == node.gpu_model)
      out.back().nodes += "," + node.name;
    else
      out.push_back({node.name, node.features, node.gpu_model, each});
  }
  return out;
}

Result<bool> on_or_off(std::string_view key, std::string_view value) {
  const auto flag = config::parse_bool(value);
  if (!flag)
    return fail(ErrorCode::usage,
                fmt::format("policy: {}: must be on or off, not \"{}\"", key, value));
  return *flag;
}

// Sets a switch of the policy whose value is a length of time.
Result<void> set_length(PolicyChoice& policy, std::string_view key, std::string_view value) {
  std::optional<bool> flag;
  if (const auto word = config::parse_bool(value); word && key != "half_life") flag = *word;
  const bool balance = key == "balance";
  auto d = config::parse_length(value);
  if (flag && (balance || !*flag)) d = *flag ? sched::kBalanceAll : Duration{};
  if (!d)
    return fail(
        ErrorCode::usage,
        balance ? fmt::format("policy: balance: must be on, off or a duration, not \"{}\"", value)
                : fmt::format("policy: {}: {}", key, d.error().message));
  (balance              ? policy.switches.balance
   : key == "half_life" ? policy.half_life
                        : policy.oldest_first_after) = *d;
  return {};
}

Result<void> set_switch(PolicyChoice& policy, std::string_view key, std::string_view value) {
  constexpr std::uint32_t kMost = 1'000'000;
  struct Flag {
    std::string_view name;
    bool sched::Policy::*member;
  };
  constexpr Flag kFlags[] = {{"fair_share", &sched::Policy::fair_share},
                             {"quota", &sched::Policy::quota},
                             {"preemption", &sched::Policy::preemption},
                             {"promises", &sched::Policy::keep_reservations}};
  if (key == "deadlines") {
    ASSIGN(set, on_or_off(key, value));
    policy.deadlines = *set;
    return {};
  }
  for (const Flag& flag : kFlags) {
    if (flag.name != key) continue;
    ASSIGN(set, on_or_off(key, value));
    policy.switches.*flag.member = *set;
    return {};
  }
  if (key == "reservations" || key == "ahead") {
    const auto n = value == "all" ? std::optional(~std::uint32_t{0}) : number(value, kMost);
    if (!n)
      return fail(ErrorCode::usage,
                  fmt::format("policy: {}: must be 0 to {} or all, not \"{}\"", key, kMost, value));
    (key == "ahead" ? policy.switches.ahead : policy.switches.reservations) = *n;
    // If every job has a reservation, all are kept as early as possible: each is checked again
    // after every end of a job.
    if (value == "all") policy.switches.replans = *n;
    return {};
  }
  if (key == "balance" || key == "oldest_first_after" || key == "half_life")
    return set_length(policy, key, value);
  if (key == "draw") {
    policy.draw = number(value, kMost);
    if (!policy.draw)
      return fail(ErrorCode::usage,
                  fmt::format("policy: draw: must be 0 to {}, not \"{}\"", kMost, value));
    return {};
  }
  if (key == "tenants" && value == "mean") {
    policy.mean_tenants = true;
    return {};
  }
  return fail(
      ErrorCode::usage,
      fmt::format("policy: {}={}: there are reservations, ahead, fair_share, quota, "
                  "preemption, balance, promises, oldest_first_after, deadlines, half_life, "
                  "tenants=mean and draw",
                  key, value));
}

void add_queue(Site& site, const std::string& name, sched::PartitionChanged queue) {
  queue.partition = PartitionId(static_cast<std::uint32_t>(site.queues.size()));
  queue.name = name;
  site.queue_of[name] = queue.partition.value();
  site.queues.push_back(std::move(queue));
}

void add_nodes(Site& site, const Cluster& cluster) {
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const NodeConfig& config = cluster.nodes[n];
    sched::NodeChanged node;
    node.node = NodeId(static_cast<std::uint32_t>(n));
    node.name = config.name;
    node.available = true;
    if (config.cpu_ids)
      node.cpus = *config.cpu_ids;
    else
      for (std::uint32_t c = 0; c < config.cpus; ++c)
        node.cpus.push_back(static_cast<std::uint16_t>(c));
    node.memory = config.memory;
    node.scratch = config.scratch;
    node.gpus = config.gpus;
    node.features = config.features;
    node.gpu_model = config.gpu_model;
    const core::CompiledNode& place = site.compiled.nodes[n];
    node.flavor = place.flavor;
    node.domains = place.domains;
    node.taints = place.taints;
    node.gpu_jobs_only = place.gpu_jobs_only;
    node.spread = place.spread;
    site.nodes.push_back(std::move(node));
  }
}

void add_queues(Site& site, const Cluster& cluster) {
  sched::PartitionChanged all;
  for (const sched::NodeChanged& node : site.nodes) all.nodes.push_back(node.node);
  add_queue(site, "", all);  // the queue for all other jobs
  for (const PartitionConfig& config : cluster.partitions) {
    sched::PartitionChanged queue;
    for (const std::string& name : config.nodes)
      for (const sched::NodeChanged& node : site.nodes)
        if (node.name == name) queue.nodes.push_back(node.node);
    queue.priority = config.priority;
    queue.default_memory_per_cpu = config.default_memory_per_cpu.value_or(0);
    queue.exclusive_nodes = config.exclusive_nodes;
    queue.up = config.up;
    add_queue(site, config.name, std::move(queue));
  }
  for (const auto& [name, tenant] : site.compiled.tenants) {
    sched::PartitionChanged queue;
    for (const std::uint32_t n : tenant.nodes) queue.nodes.push_back(NodeId(n));
    queue.default_memory_per_cpu = tenant.effective.jobs.default_memory_per_cpu.value_or(0);
    queue.quota_node = tenant.quota_node;
    add_queue(site, name, std::move(queue));
  }
}

}  // namespace

Result<Cluster> read_cluster(const std::string& text) {
  Cluster cluster;
  if (auto made = short_form(text)) {
    if (!*made) return tl::unexpected(made->error());
    cluster = std::move(**made);
  } else if (::access(text.c_str(), F_OK) != 0) {
    return fail(
        ErrorCode::not_found,
        fmt::format("cluster {}: neither a file nor NODESxCOUNTgpu or NODESxCOUNTcpu", text));
  } else {
    ASSIGN(config, load_config(text));
    cluster.name = config->cluster;
    cluster.nodes = std::move(config->nodes);
    cluster.partitions = std::move(config->partitions);
  }
  std::int64_t gpus = 0, cpus = 0;
  for (const NodeConfig& node : cluster.nodes) {
    gpus += node.gpus;
    cpus += node.cpus;
  }
  cluster.unit = gpus > 0 ? Resource::gpu : Resource::cpu;
  cluster.total = gpus > 0 ? gpus : cpus;
  return cluster;
}

Result<PolicyChoice> parse_policy(const std::string& text) {
  PolicyChoice policy;
  policy.label = text.empty() ? "EASY" : text;
  policy.switches.depth = ~std::uint32_t{0};
  policy.switches.attempts = ~std::uint64_t{0};
  policy.switches.keep_reservations = true;
  policy.switches.searches = ~std::uint32_t{0};
  policy.switches.search_pause = Duration{};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || ::access(word.c_str(), F_OK) == 0) {
      policy.paths.push_back(word);
    } else if (auto set = set_switch(policy, word.substr(0, equals), word.substr(equals + 1));
               !set) {
      return tl::unexpected(set.error());
    }
  }
  if (policy.mean_tenants && !policy.paths.empty())
    return fail(ErrorCode::usage, "policy: tenants=mean is instead of documents, not with them");
  const bool tenants = !policy.paths.empty() || policy.mean_tenants;
  if (!tenants && text.find("promises") == std::string::npos)
    policy.switches.keep_reservations =
        false;  // as in the reference EASY, which makes reservations again in each plan
  if (tenants && text.find("ahead") == std::string::npos) policy.switches.ahead = kPlannedAhead;
  return policy;
}

std::vector<tenancy::Document> mean_tenants(const Cluster& cluster, const Trace& trace,
                                            std::optional<std::uint32_t> draw) {
  std::map<std::string, double> work;
  for (const TraceJob& job : trace.jobs) {
    const double units = job.processors > 0              ? job.processors
                         : cluster.unit == Resource::gpu ? job.gpus
                                                         : job.cpus;
    work[job.tenant] += units * static_cast<double>(job.run.us);
  }
  const double span = static_cast<double>(
      std::max<std::int64_t>(1, (trace.jobs.back().submit - trace.jobs.front().submit).us));
  double sum = 0;
  std::uint64_t nth = 0;
  for (auto& [tenant, use] : work) {
    if (draw) use *= 0.25 + 1.75 * drawn(*draw, nth++);
    sum += use / span;
  }
  const double scale = std::min(1.0, static_cast<double>(cluster.total) / sum);
  const std::int64_t each = 1000;  // units in a core or a GPU
  std::vector<tenancy::Document> out;
  tenancy::QuotaLine rest;  // quota that belongs to no tenant
  rest.resource = cluster.unit;
  rest.nominal = cluster.total * each;
  for (const auto& [name, use] : work) {
    tenancy::Tenant tenant;
    tenant.name = name;
    tenant.cohort = "all";
    tenancy::QuotaLine line;
    line.resource = cluster.unit;
    line.nominal = static_cast<std::int64_t>(use / span * scale) * each;
    rest.nominal -= line.nominal;
    tenant.quota.push_back(line);
    out.emplace_back(std::move(tenant));
  }
  tenancy::Cohort cohort;
  cohort.name = "all";
  cohort.quota.push_back(rest);
  out.emplace_back(std::move(cohort));
  return out;
}

Result<Site> make_site(const Cluster& cluster, const PolicyChoice& policy, const Trace& trace) {
  std::vector<tenancy::Document> documents;
  Site site;
  if (policy.mean_tenants) documents = mean_tenants(cluster, trace, policy.draw);
  if (!policy.paths.empty()) {
    const auto nodes = alike(cluster);
    tenancy::LoadOptions options;
    options.nodes = &nodes;
    ASSIGN(loaded, tenancy::load_documents(policy.paths, options));
    documents = std::move(loaded->documents);
    site.notes = std::move(loaded->notes);
  }
  core::Documents by_key;
  for (tenancy::Document& d : documents) by_key.insert_or_assign(core::key_of(d), std::move(d));
  std::vector<core::NodeTraits> traits;
  for (const NodeConfig& node : cluster.nodes)
    traits.push_back({node.name, node.gpu_model, node.features});
  site.label = policy.label;
  site.switches = policy.switches;
  site.oldest_first_after = policy.oldest_first_after;
  site.deadlines = policy.deadlines;
  site.compiled = core::compile(by_key, core::new_class_names(by_key, {}), traits, 1,
                                policy.half_life, core::LooseTenants::one_cohort);
  site.has_tenants = !site.compiled.tenants.empty();
  add_nodes(site, cluster);
  add_queues(site, cluster);
  return site;
}

Result<JobShape> shape_of(const TraceJob& job, const Cluster& cluster) {
  const bool gpus = cluster.unit == Resource::gpu;
  const std::uint32_t units = job.processors > 0     ? job.processors
                              : gpus && job.gpus > 0 ? job.gpus
                                                     : job.cpus;
  const bool by_gpu = gpus && (job.processors > 0 || job.gpus > 0);
  if (job.gpus > 0 && !gpus) return fail(ErrorCode::never_fits, "gpus: the cluster has none");
  std::uint32_t most = 0;
  for (const NodeConfig& node : cluster.nodes)
    most = std::max(most, by_gpu ? node.gpus : node.cpus);
  std::uint32_t nodes = job.nodes > 0 ? job.nodes : (units + most - 1) / most;
  if (job.nodes == 0)  // all nodes of a gang provide the same amount
    while (units % nodes != 0) ++nodes;
  if (nodes > cluster.nodes.size() || units % nodes != 0 || units / nodes > most)
    return fail(ErrorCode::never_fits, fmt::format("{} {} on {} nodes of {}", units,
                                                   by_gpu ? "GPUs" : "cores", nodes, cluster.name));
  JobShape shape;
  shape.min_nodes = shape.max_nodes = nodes;
  const std::uint32_t cpus = by_gpu && job.cpus == 0 ? units : by_gpu ? job.cpus : units;
  shape.tasks = nodes * std::max<std::uint32_t>(1, (cpus + nodes - 1) / nodes);
  if (nodes > 1) shape.tasks_per_node = shape.tasks / nodes;
  if (by_gpu) shape.gpus_per_node = units / nodes;
  if (job.memory > 0) shape.memory_per_node = job.memory;
  if (!job.app.empty() && job.max_per_node > 0) {
    shape.anti_affinity = job.app;
    shape.anti_affinity_level = "node";
    shape.anti_affinity_most = job.max_per_node;
  }
  return shape;
}

}  // namespace gantry::replay
