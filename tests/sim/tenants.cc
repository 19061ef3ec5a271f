// See tenants.h.
#include "tests/sim/tenants.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/proto/tenancy.h"
#include "config/tenancy/check.h"

namespace gantry::sim {
namespace {

using tenancy::Cohort;
using tenancy::Document;
using tenancy::Flavor;
using tenancy::NodePool;
using tenancy::PriorityClass;
using tenancy::QuotaLine;
using tenancy::Tenant;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::int64_t capacity(const Settings& settings, Resource r, const std::string& model) {
  std::int64_t sum = 0;
  for (const NodeConfig& n : settings.config.nodes) {
    if (!model.empty() && n.gpu_model != model) continue;
    if (r == Resource::cpu) sum += std::int64_t{n.cpus} * 1000;
    if (r == Resource::memory) sum += n.memory;
    if (r == Resource::gpu) sum += std::int64_t{n.gpus} * kGpuUnit;
  }
  return sum;
}

QuotaLine draw_line(Random& random, const Settings& settings, Resource r, const std::string& flavor,
                    std::int64_t members) {
  const std::int64_t unit = r == Resource::memory ? kGiB : 1000;
  const std::int64_t all = capacity(settings, r, flavor) / unit;
  QuotaLine line;
  line.flavor = flavor;
  line.resource = r;
  line.nominal = random.between(0, std::max<std::int64_t>(1, 2 * all / members)) * unit;
  if (random.chance(600)) line.borrow = random.between(0, all) * unit;
  if (random.chance(500)) line.lend = random.between(0, line.nominal / unit) * unit;
  return line;
}

std::vector<QuotaLine> draw_quota(Random& random, const Settings& settings, std::int64_t members) {
  std::vector<QuotaLine> lines;
  if (settings.gangs) return {draw_line(random, settings, Resource::gpu, "", members)};
  if (random.chance(900)) lines.push_back(draw_line(random, settings, Resource::cpu, "", members));
  if (random.chance(250))
    lines.push_back(draw_line(random, settings, Resource::memory, "", members));
  if (random.chance(350)) lines.push_back(draw_line(random, settings, Resource::gpu, "", members));
  for (const char* flavor : {"a100", "h100"}) {
    if (random.chance(250))
      lines.push_back(draw_line(random, settings, Resource::gpu, flavor, members));
    if (random.chance(60))
      lines.push_back(draw_line(random, settings, Resource::cpu, flavor, members));
  }
  return lines;
}

std::vector<Document> draw_classes(Random& random) {
  std::vector<Document> out;
  for (const char* name : {"production-critical", "normal", "best-effort"}) {
    PriorityClass c;
    c.name = name;
    c.value = c.name == "normal" ? 500 : c.name == "best-effort" ? 100 : 1000;
    c.is_default = c.name == "normal";
    c.preempts = c.value == 1000;
    c.preemptible = c.value < 1000 || random.chance(300);
    c.victim_mode = random.chance(150) ? tenancy::VictimMode::cancel : tenancy::VictimMode::requeue;
    c.grace = seconds(random.between(1, 40));
    if (random.chance(400)) c.min_run_time = seconds(random.between(1, 120));
    if (random.chance(400)) c.max_preemptions = static_cast<std::uint32_t>(random.between(0, 3));
    if (random.chance(500)) c.age_step = seconds(random.between(1, 60));
    out.emplace_back(std::move(c));
  }
  return out;
}

void draw_cluster_documents(Random& random, const Settings& settings, std::vector<Document>& out) {
  for (const char* model : {"a100", "h100"}) {
    Flavor flavor;
    flavor.name = flavor.gpu_model = model;
    if (random.chance(300)) flavor.charge.row(Resource::gpu) = random.between(1, 5) * 1000;
    out.emplace_back(std::move(flavor));
  }
  const auto& nodes = settings.config.nodes;
  if (random.chance(200)) {
    NodePool pool;
    pool.name = "own";
    pool.nodes = nodes.front().name;
    pool.tenant = "t1";
    out.emplace_back(std::move(pool));
  }
  if (random.chance(200)) {
    NodePool pool;
    pool.name = "odd";
    pool.nodes = nodes.back().name;
    if (random.chance(500)) pool.taints = {"odd"};
    pool.gpu_jobs_only = nodes.back().gpus > 0 && random.chance(300);
    pool.spread = random.chance(500);
    out.emplace_back(std::move(pool));
  }
  if (random.chance(400)) {
    tenancy::Topology racks;
    racks.name = "racks";
    racks.levels = {"rack"};
    for (std::size_t i = 0; i < nodes.size(); ++i)
      racks.domains.push_back({"rack", fmt::format("r{}", i), nodes[i].name});
    // One rack has two nodes, the others have one.
    racks.domains[0].nodes += "," + nodes[1].name;
    racks.domains.erase(racks.domains.begin() + 1);
    out.emplace_back(std::move(racks));
  }
}

Tenant draw_tenant(Random& random, const Settings& settings, const std::string& name,
                   std::size_t number, const std::vector<std::string>& cohorts) {
  Tenant t;
  t.name = name;
  if (!cohorts.empty() && random.chance(900)) t.cohort = random.pick(cohorts);
  if (random.chance(500)) t.weight = static_cast<std::uint32_t>(random.between(0, 3000));
  t.quota = draw_quota(random, settings, 4);
  if (random.chance(500)) t.jobs.default_time = minutes(random.between(1, 15));
  if (random.chance(100)) t.jobs.max_nodes = 2;
  if (random.chance(250)) t.counts.running_jobs = static_cast<std::uint32_t>(random.between(1, 4));
  if (random.chance(150)) t.counts.queued_jobs = static_cast<std::uint32_t>(random.between(3, 30));
  if (random.chance(100))
    t.counts.submits_per_minute = static_cast<std::uint32_t>(random.between(1, 5));
  const auto projects = random.chance(400) ? 0 : random.between(1, 3);
  for (std::int64_t p = 0; p < projects; ++p) {
    tenancy::Project project{
        fmt::format("p{}", p), static_cast<std::uint32_t>(random.below(10)), {}};
    if (random.chance(500))
      project.users.push_back({"user1", static_cast<std::uint32_t>(random.below(10))});
    t.projects.push_back(std::move(project));
  }
  for (std::size_t u = 1; u <= settings.clients_count; ++u) {
    const bool own = (number - 1) % settings.clients_count == u - 1;
    if (!own && random.chance(350)) continue;
    tenancy::Grant grant;
    grant.user = fmt::format("user{}", u);
    grant.role = random.chance(150)           ? tenancy::Role::tenant_admin
                 : !own && random.chance(150) ? tenancy::Role::viewer
                                              : tenancy::Role::user;
    t.grants.push_back(std::move(grant));
  }
  if (random.chance(300)) t.classes = {{"fast", 5}, {"slow", -5}};
  if (random.chance(150)) t.default_class = "best-effort";
  if (random.chance(400)) t.allowed_classes = {"production-critical", "normal", "best-effort"};
  if (random.chance(400)) t.reclaim = static_cast<tenancy::Reclaim>(random.below(3));
  return t;
}

template <class T>
std::vector<T> all_of(const core::Documents& now) {
  std::vector<T> out;
  for (const auto& [key, document] : now)
    if (const auto* one = std::get_if<T>(&document)) out.push_back(*one);
  return out;
}

std::vector<std::string> names_of_cohorts(const core::Documents& now) {
  std::vector<std::string> out;
  for (const Cohort& c : all_of<Cohort>(now)) out.push_back(c.name);
  return out;
}

void change_quota(Random& random, Tenant& t) {
  const std::int64_t by = random.pick(std::vector<std::int64_t>{0, 500, 500, 2000, 3000});
  for (QuotaLine& line : t.quota) {
    const std::int64_t unit = line.resource == Resource::memory ? kGiB : 1000;
    line.nominal = line.nominal / unit * by / 1000 * unit;
    if (line.lend) line.lend = std::min(*line.lend, line.nominal);
    if (random.chance(200)) line.borrow.reset();
    if (random.chance(200)) line.borrow = 0;
  }
}

// Each of these documents must be refused, whoever sends it.
proto::ApplyTenancy draw_malformed(Random& random, Tenant t) {
  proto::ApplyTenancy m;
  m.comment = kMustFail;
  switch (random.below(6)) {
    case 0: t.cohort = "nowhere"; break;
    case 1: t.quota = {{"", Resource::cpu, 1000, {}, 2000}}; break;
    case 2: t.quota = {{"", Resource::cpu, -1, {}, {}}}; break;
    case 3: t.name = "main"; break;
    case 4: t.quota = {{"nothing", Resource::gpu, 1, {}, {}}}; break;
    default: m.removals = {{"Tenant", "nobody"}}; break;
  }
  m.documents.emplace_back(std::move(t));
  return m;
}

}  // namespace

// Uses a copy of the random source, so that histories do not depend on prices. Months end in the
// middle of a history, and a second price book comes into force in it.
std::vector<Document> draw_prices(Random random) {
  const auto price = [&](std::int64_t most) { return Money{random.between(0, most)}; };
  const auto book = [&](const std::string& name, const std::string& from) {
    tenancy::PriceBook b;
    b.name = name;
    b.from = from;
    b.currency = "EUR";
    b.zone = {"XST10XDT,J1/12,J2/12", "XST10XDT,J1/12,J2/12"};
    b.gpu = {{"default", price(1'000'000)}, {"a100", price(2'500'000)}};
    b.cpu = price(20'001);
    b.memory = price(3'001);
    b.scratch = price(101);
    b.io = Money{30'007};  // not drawn, so that older histories stay as they were
    b.plans = {
        {"spot", static_cast<std::int32_t>(random.below(1000)), {"best-effort"}, {}, {}, {}}};
    b.hours = {{"night", 22 * 60, 6 * 60, static_cast<std::int32_t>(random.below(1500)), {}}};
    for (auto* credit : {&b.preempted, &b.node_failure, &b.launch_failure})
      *credit = static_cast<tenancy::CreditPart>(random.below(3));
    return b;
  };
  std::vector<Document> out{book("now", "")};
  if (random.chance(500)) out.emplace_back(book("soon", "2025-12-31T20:00"));
  return out;
}

namespace {

// Limits of use that eventually allow every job to start. Uses a copy of the random source, so that
// the other documents do not depend on them.
void draw_limits(Random random, std::vector<Document>& out) {
  if (!random.chance(300)) return;
  for (Document& document : out) {
    const auto some = [&] { return std::to_string(random.between(1, 4)); };
    if (auto* cls = std::get_if<PriorityClass>(&document)) {
      if (random.chance(400)) cls->limits["GrpJobs"] = some();
      if (random.chance(400)) cls->limits["MaxJobsPerUser"] = some();
      if (random.chance(200)) cls->limits["UsageFactor"] = "0.5";
    } else if (auto* t = std::get_if<Tenant>(&document)) {
      if (random.chance(300)) t->associations[t->name] = "GrpJobs=" + some();
      if (random.chance(300)) t->associations[t->name + "/user1"] = "MaxJobs=" + some();
    }
  }
}

}  // namespace

std::vector<Document> draw_tenants(Random& random, const Settings& settings) {
  std::vector<Document> prices = draw_prices(random);
  std::vector<Document> out = draw_classes(random);
  std::move(prices.begin(), prices.end(), std::back_inserter(out));
  draw_cluster_documents(random, settings, out);
  std::vector<std::string> cohorts;
  if (random.chance(900)) {
    Cohort org;
    org.name = "org";
    if (random.chance(300)) org.quota = {draw_line(random, settings, Resource::cpu, "", 4)};
    for (QuotaLine& line : org.quota) line.lend.reset();
    cohorts.push_back(org.name);
    out.emplace_back(std::move(org));
    for (const char* name : {"ml", "web"}) {
      if (random.chance(500)) continue;
      Cohort part;
      part.name = name;
      part.parent = "org";
      if (random.chance(300)) part.quota = {draw_line(random, settings, Resource::cpu, "", 4)};
      if (random.chance(300)) part.weight = static_cast<std::uint32_t>(random.between(0, 3000));
      cohorts.push_back(part.name);
      out.emplace_back(std::move(part));
    }
  }
  const auto count = static_cast<std::size_t>(random.between(2, 6));
  for (std::size_t i = 1; i <= count; ++i)
    out.emplace_back(draw_tenant(random, settings, fmt::format("t{}", i), i, cohorts));
  draw_limits(random, out);
  return out;
}

proto::ApplyTenancy draw_tenancy_change(Random& random, const Settings& settings,
                                        const core::Documents& now) {
  proto::ApplyTenancy m;
  const auto tenants = all_of<Tenant>(now);
  if (tenants.empty()) return m;
  Tenant t = random.pick(tenants);
  const auto what = random.below(100);
  if (what < 12) return draw_malformed(random, std::move(t));
  if (what < 55) {
    change_quota(random, t);
  } else if (what < 65) {
    const std::size_t number = tenants.size() + 1 + random.below(3);
    t = draw_tenant(random, settings, fmt::format("t{}", number), number, names_of_cohorts(now));
  } else if (what < 72) {
    m.removals = {{"Tenant", t.name}};
    return m;
  } else if (what < 82) {
    for (Document& c : draw_classes(random)) m.documents.push_back(std::move(c));
  } else if (what < 90) {
    t.weight = static_cast<std::uint32_t>(random.between(0, 3000));
    t.reclaim = static_cast<tenancy::Reclaim>(random.below(3));
    t.counts = {};
  } else {
    t.cohort = "";
    if (const auto cohorts = names_of_cohorts(now); !cohorts.empty())
      t.cohort = random.pick(cohorts);
  }
  if (what < 72 || what >= 82) m.documents.emplace_back(std::move(t));
  if (what >= 60)
    for (Document& book : draw_prices(random)) m.documents.push_back(std::move(book));
  m.dry_run = random.chance(120);
  return m;
}

proto::ApplyTenancy draw_own_change(Random& random, const core::Documents& now,
                                    const std::string& user) {
  proto::ApplyTenancy m;
  const auto tenants = all_of<Tenant>(now);
  if (tenants.empty()) return m;
  Tenant t = random.pick(tenants);
  // a tenant's admin may not change quota or weight, whether granted or not
  if (random.chance(500)) {
    if (random.chance(500))
      t.quota.clear();
    else
      t.weight = t.weight.value_or(1000) + 1;
    if (t.quota.empty() && std::get<Tenant>(now.at({Tenant::kKind, t.name})).quota.empty())
      t.cohort += "x";
    m.comment = kMustFail;
  } else {
    t.projects = {{"p0", static_cast<std::uint32_t>(random.below(10)), {{user, 3}}}};
    if (random.chance(300)) t.classes = {{"fast", 7}};
  }
  m.documents.emplace_back(std::move(t));
  return m;
}

void draw_tenancy_of(Random& random, const core::Documents& now, const std::string& user,
                     JobSpec& spec) {
  if (random.chance(300)) {
    spec.shape.gpus_per_node = static_cast<std::uint32_t>(random.between(1, 2));
    if (random.chance(300)) spec.shape.gpu_models = {random.chance(500) ? "a100" : "h100"};
  }
  if (random.chance(150)) spec.shape.tolerations = {"odd"};
  if (spec.shape.min_nodes > 1 && random.chance(200)) {
    spec.shape.topology = random.chance(400) ? TopologyWish::required : TopologyWish::preferred;
    spec.shape.topology_level = "rack";
  }
  const auto tenants = all_of<Tenant>(now);
  if (tenants.empty() || random.chance(100)) return;  // the job goes to a partition of the cluster
  const Tenant* tenant = &random.pick(tenants);
  for (int tries = 0; tries < 6; ++tries) {
    const bool mine = std::any_of(
        tenant->grants.begin(), tenant->grants.end(),
        [&](const tenancy::Grant& g) { return g.user == user && g.role >= tenancy::Role::user; });
    if (mine) break;
    tenant = &random.pick(tenants);
  }
  spec.partition = random.chance(950) ? tenant->name : "";
  if (random.chance(200))
    spec.priority_class = "production-critical";
  else if (random.chance(250))
    spec.priority_class = "best-effort";
  if (!tenant->allowed_classes.empty() || spec.priority_class != "production-critical" ||
      random.chance(100)) {
    if (!tenant->classes.empty() && random.chance(300)) spec.tenant_class = "fast";
  } else {
    spec.priority_class.clear();
  }
  if (!tenant->projects.empty() && random.chance(500))
    spec.account = random.pick(tenant->projects).name;
}

void draw_gang_of(Random& random, const Settings& settings, JobShape& shape) {
  const auto all = static_cast<std::int64_t>(settings.config.nodes.size());
  const auto nodes = static_cast<std::uint32_t>(
      random.chance(500) ? random.between(1, std::min<std::int64_t>(4, all)) : 1);
  shape = {};
  shape.min_nodes = shape.max_nodes = shape.tasks = nodes;
  shape.gpus_per_node = nodes > 1 || random.chance(400) ? 8u : 1u << random.below(3);
  shape.memory_per_node = kGiB;
}

}  // namespace gantry::sim
