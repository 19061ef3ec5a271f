// Tenants of a scenario: their documents, commands that ask about them, and what they use; see
// world.h.
//
//   > tenant fraud cohort=org cpu=4:2:1 user=alice,bob tenant-admin=carol projects=train:3,serve
//   > tenant fraud own_classes=urgent:1000              classes that belong to the tenant
//   > tenant fraud projects=train:3:alice+bob           the share of a project, then its users
//   > tenant fraud projects=train,deep@train                 deep is below train
//   > cohort org parent=all cpu=2
//   > class low limits=GrpTRES=cpu=2|MaxJobsPerUser=1     limits of use
//   > reset_use admin qos=low      > reset_use admin account=fraud [user=alice]
//   > use admin                                         what is used of limits
//   > class best-effort value=100 grace=10s min_run=1m most=2 age=30s preempts=yes
//   > domain rack r1 n[1-2]                             part of the topology; wider levels first
//   > drop Tenant fraud
//   > apply admin [dry=yes] [base=1] [comment="..."]    applies all documents since the last apply
//   > rollback admin 1
//   > documents alice [revision=1]       > revisions alice       > usage alice
//   > order alice                                       the order of jobs as gprio shows it
//
// Quota is nominal:borrow:lend, in cores, GiB (mem) or GPUs; "-" is unset.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/tenancy/use_limits.h"
#include "common/text/split.h"
#include "common/text/text.h"
#include "world.h"

namespace gantry::core::test {
namespace {

void quota_of(const Words& w, std::vector<tenancy::QuotaLine>& out) {
  for (const auto& [name, r, unit] :
       {std::tuple{"cpu", Resource::cpu, std::int64_t{1000}},
        std::tuple{"mem", Resource::memory, std::int64_t{1} << 30},
        std::tuple{"gpu", Resource::gpu, kGpuUnit},
        std::tuple{"io", Resource::io, std::int64_t{1'000'000'000}},
        std::tuple{"net", Resource::net, std::int64_t{1'000'000'000}}}) {
    const std::string* text = w.find(name);
    if (text == nullptr) continue;
    const auto parts = split(*text, ':');
    tenancy::QuotaLine line;
    line.resource = r;
    line.nominal = std::stoll(parts[0]) * unit;
    if (parts.size() > 1 && parts[1] != "-") line.borrow = std::stoll(parts[1]) * unit;
    if (parts.size() > 2 && parts[2] != "-") line.lend = std::stoll(parts[2]) * unit;
    out.push_back(line);
  }
}

// enforce=, audit=, warn=, registries=HOST,HOST/PATH, by_digest=yes, sandbox=LEVEL,
// sandboxes=LEVEL,...
tenancy::TenantSecurity security_of(const Words& w) {
  tenancy::TenantSecurity out;
  for (const auto& [word, to] :
       {std::pair{"enforce", &out.enforce}, {"audit", &out.audit}, {"warn", &out.warn}})
    if (const std::string* text = w.find(word))
      for (const auto& [profile, name] : enum_names(tenancy::SecurityProfile{}))
        if (name == *text) *to = profile;
  if (const std::string* hosts = w.find("registries")) out.registries = split(*hosts, ',');
  if (const std::string* text = w.find("sandbox"))
    for (const auto& [level, name] : enum_names(Sandbox{}))
      if (name == *text) out.sandbox = level;
  if (const std::string* names = w.find("sandboxes")) out.sandboxes = split(*names, ',');
  if (w.find("by_digest")) out.images_by_digest = *w.find("by_digest") == "yes";
  return out;
}

tenancy::Tenant tenant_of(const Words& w) {
  tenancy::Tenant t;
  t.name = w.plain.at(1);
  quota_of(w, t.quota);
  const auto number = [&](const char* key, std::optional<std::uint32_t>& to) {
    if (const std::string* text = w.find(key)) to = std::stoul(*text);
  };
  if (w.find("label"))
    t.labels.emplace(split(*w.find("label"), ':').at(0), split(*w.find("label"), ':').at(1));
  if (w.find("cohort")) t.cohort = *w.find("cohort");
  number("weight", t.weight);
  number("running", t.counts.running_jobs);
  number("queued", t.counts.queued_jobs);
  number("queued_per_user", t.counts.queued_jobs_per_user);
  number("per_minute", t.counts.submits_per_minute);
  number("array", t.counts.array_tasks);
  number("reservations", t.counts.reservations);
  if (w.find("max_cpus") || w.find("max_gpus")) t.jobs.max_per_job.emplace();
  if (const std::string* most = w.find("max_cpus"))
    (*t.jobs.max_per_job).row(Resource::cpu) = std::stoll(*most) * 1000;
  if (const std::string* most = w.find("max_gpus"))
    (*t.jobs.max_per_job).row(Resource::gpu) = std::stoll(*most) * kGpuUnit;
  if (const std::string* rate = w.find("default_io")) t.jobs.default_io = parse_rate(*rate);
  if (const std::string* rate = w.find("default_net")) t.jobs.default_net = parse_rate(*rate);
  const auto length = [&](const char* key, std::optional<Duration>& to) {
    if (const std::string* text = w.find(key)) to = parse_length(*text);
  };
  length("idle_note", t.idle_gpus.note);
  length("idle_warn", t.idle_gpus.warn);
  length("idle_requeue", t.idle_gpus.requeue);
  length("idle_cancel", t.idle_gpus.cancel);
  if (w.find("host_network")) t.jobs.host_network = true;
  t.security = security_of(w);
  if (w.find("own_queue")) t.own_queue = *w.find("own_queue") == "yes";
  if (w.find("keep_others_off")) t.jobs.keep_others_off = true;
  if (w.find("time")) t.jobs.default_time = parse_length(*w.find("time"));
  for (const auto& [role, name] : enum_names(tenancy::Role{}))
    if (const std::string* users = w.find(std::string(name)))
      for (const std::string& user : split(*users, ',')) t.grants.push_back({role, user, {}});
  if (w.find("projects"))
    for (const std::string& text : split(*w.find("projects"), ',')) {
      const auto parts = split(text, ':');
      const auto names = split(parts[0], '@');
      tenancy::Project project{names[0], 1, {}};
      if (names.size() > 1) project.parent = names[1];
      if (parts.size() > 1) project.shares = std::stoul(parts[1]);
      if (parts.size() > 2)
        for (const std::string& user : split(parts[2], '+')) project.users.push_back({user, 1});
      t.projects.push_back(std::move(project));
    }
  if (w.find("limits_of"))  // limits_of=fraud/alice:MaxJobs=1|GrpTRES=node=1;fraud:GrpJobs=3
    for (const std::string& text : split(*w.find("limits_of"), ';'))
      t.associations[text.substr(0, text.find(':'))] = text.substr(text.find(':') + 1);
  if (w.find("default"))  // default=alice:proj
    for (const std::string& text : split(*w.find("default"), ',')) {
      const auto parts = split(text, ':');
      t.default_accounts[parts.at(0)] = parts.at(1);
    }
  if (w.find("own_classes"))
    for (const std::string& text : split(*w.find("own_classes"), ',')) {
      const auto parts = split(text, ':');
      t.classes.push_back({parts[0], std::stoi(parts[1])});
    }
  if (w.find("classes")) t.allowed_classes = split(*w.find("classes"), ',');
  if (w.find("default_class")) t.default_class = *w.find("default_class");
  if (w.find("reclaim"))
    for (const auto& [value, name] : enum_names(tenancy::Reclaim{}))
      if (name == *w.find("reclaim")) t.reclaim = value;
  return t;
}

tenancy::PriorityClass class_of(const Words& w) {
  tenancy::PriorityClass c;
  c.name = w.plain.at(1);
  if (w.find("value")) c.value = std::stoi(*w.find("value"));
  c.is_default = w.find("default") != nullptr;
  c.preempts = w.find("preempts") != nullptr;
  c.preemptible = w.find("safe") == nullptr;
  if (w.find("cancel")) c.victim_mode = tenancy::VictimMode::cancel;
  if (w.find("grace")) c.grace = parse_length(*w.find("grace"));
  if (w.find("min_run")) c.min_run_time = parse_length(*w.find("min_run"));
  if (w.find("most")) c.max_preemptions = std::stoul(*w.find("most"));
  if (w.find("age")) c.age_step = parse_length(*w.find("age"));
  if (w.find("limits")) c.limits = tenancy::read_limit_row(*w.find("limits"));
  if (w.find("victims")) c.victims = split(*w.find("victims"), ',');
  return c;
}

std::string amount(Resource r, std::int64_t n) {
  Resources one;
  one.row(r) = n;
  return n == 0 ? "0" : to_string(one);
}

}  // namespace

bool World::tenants_command(const std::string& verb, const Words& w) {
  if (verb == "tenant") {
    tenancy::Tenant tenant = tenant_of(w);
    add_rules(w, tenant);
    return pending_.documents.emplace_back(std::move(tenant)), true;
  }
  if (verb == "class") return pending_.documents.emplace_back(class_of(w)), true;
  if (verb == "cohort") {
    tenancy::Cohort c;
    c.name = w.plain.at(1);
    if (w.find("parent")) c.parent = *w.find("parent");
    quota_of(w, c.quota);
    return pending_.documents.emplace_back(std::move(c)), true;
  }
  if (verb == "pool") {  // pool own nodes=n[1-2] tenant=fraud taints=slow,old gpu_jobs_only=yes
    tenancy::NodePool pool;
    pool.name = w.plain.at(1);
    if (w.find("nodes")) pool.nodes = *w.find("nodes");
    if (w.find("tenant")) pool.tenant = *w.find("tenant");
    if (w.find("taints")) pool.taints = split(*w.find("taints"), ',');
    pool.gpu_jobs_only = w.find("gpu_jobs_only") != nullptr;
    return pending_.documents.emplace_back(std::move(pool)), true;
  }
  if (verb == "domain") return add_domain(w), true;
  if (verb == "reset_use") {
    const auto word = [&](const char* key) { return w.find(key) ? *w.find(key) : std::string(); };
    return ask(w.plain.at(1), proto::ResetUse{word("qos"), word("account"), word("user")}), true;
  }
  if (verb == "use") return ask(w.plain.at(1), proto::ListUse{}), true;
  if (verb == "drop") return pending_.removals.push_back({w.plain.at(1), w.plain.at(2)}), true;
  if (verb == "apply") {
    proto::ApplyTenancy m = std::exchange(pending_, {});
    m.dry_run = w.find("dry") != nullptr;
    if (w.find("base")) m.base_revision = std::stoull(*w.find("base"));
    if (w.find("comment")) m.comment = *w.find("comment");
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "rollback") return rollback(w), true;
  if (verb == "documents") {
    proto::GetTenancy m;
    if (w.find("revision")) m.revision = std::stoull(*w.find("revision"));
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "revisions") return ask(w.plain.at(1), proto::TenancyHistory{}), true;
  if (verb == "order") return ask(w.plain.at(1), proto::PriorityTuples{}), true;
  if (verb == "usage") return ask(w.plain.at(1), proto::TenantUsage{}), true;
  return false;
}

// domain rack r1 n[1-2]: adds to the topology. Levels go from the widest to the narrowest, in the
// order in which they are first named.
void World::add_domain(const Words& w) {
  if (pending_.documents.empty() ||
      !std::holds_alternative<tenancy::Topology>(pending_.documents.back()))
    pending_.documents.emplace_back(tenancy::Topology{"site", {}, {}});
  auto& topology = std::get<tenancy::Topology>(pending_.documents.back());
  const std::string& level = w.plain.at(1);
  if (std::find(topology.levels.begin(), topology.levels.end(), level) == topology.levels.end())
    topology.levels.push_back(level);
  topology.domains.push_back({level, w.plain.at(2), w.plain.at(3)});
}

// Does what gtenant rollback does: the documents of an earlier revision replace the present ones.
void World::rollback(const Words& w) {
  const auto documents = [&](std::optional<std::uint64_t> revision) {
    proto::GetTenancy m;
    m.revision = revision;
    core_->step(now_, ClientRequest{ConnectionId(1), next_request_++, who("admin"), std::move(m)});
    Turn turn = core_->take_turn();
    return turn.replies.at(0).message.get<proto::TenancyDocuments>().documents;
  };
  proto::ApplyTenancy m;
  m.documents = documents(std::stoull(w.plain.at(2)));
  m.comment = "as of " + w.plain.at(2);
  for (const tenancy::Document& now : documents(std::nullopt)) {
    const bool stays =
        std::any_of(m.documents.begin(), m.documents.end(), [&](const tenancy::Document& d) {
          return tenancy::kind_of(d) == tenancy::kind_of(now) &&
                 tenancy::name_of(d) == tenancy::name_of(now);
        });
    if (!stays) m.removals.push_back({std::string(tenancy::kind_of(now)), tenancy::name_of(now)});
  }
  ask(w.plain.at(1), std::move(m));
}

void World::print_changes(const std::vector<proto::DocumentChange>& changes) {
  for (const proto::DocumentChange& change : changes) {
    line(fmt::format("  {} {} {}", enum_name(change.action), change.kind, change.name));
    if (change.action == proto::ChangeAction::changed)
      for (const proto::FieldChange& field : change.changes)
        line(fmt::format("    {}: \"{}\" -> \"{}\"", field.path, field.before, field.after));
  }
}

// Only what is limited, or used.
void World::print(const proto::UseReply& m) {
  for (const proto::UseRow& row : m.rows) {
    if (row.limits.empty() && row.submitted == 0) continue;
    std::string text =
        row.qos.empty() ? fmt::format("account {} {}", row.account, row.user) : "qos " + row.qos;
    text += fmt::format(" [{}] submitted {} running {} wall {:.1f}m",
                        tenancy::format_limit_row(row.limits), row.submitted, row.running,
                        row.wall_minutes);
    for (const proto::TresUse& use : row.tres)
      if (use.name == "cpu" || use.name == "node")
        text += fmt::format(" {} {} used {:.1f}m left {:.1f}m", use.name, use.held,
                            use.used_minutes, use.running_minutes);
    line(text);
    for (const proto::PartOfUse& part : row.users)
      line(fmt::format("  {} submitted {} running {}", part.name, part.submitted, part.running));
  }
}

void World::print(const proto::TenancyPlanned& m) {
  line(fmt::format("{} revision {}", m.applied ? "applied:" : "planned on", m.revision));
  print_changes(m.changes);
  for (const proto::OverQuota& over : m.over)
    line(fmt::format("  {} would hold {} of {}", over.name, amount(over.resource, over.usage),
                     amount(over.resource, over.limit)));
}

void World::print(const proto::TenancyDocuments& m) {
  line(fmt::format("revision {}", m.revision));
  for (const tenancy::Document& document : m.documents) {
    std::string text =
        fmt::format("  {} {}", tenancy::kind_of(document), tenancy::name_of(document));
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document))
      for (const tenancy::QuotaLine& q : tenant->quota)
        text += fmt::format(" {}", amount(q.resource, q.nominal));
    line(text);
  }
}

void World::print(const proto::TenancyHistoryReply& m) {
  for (const proto::TenancyRevision& r : m.revisions) {
    line(fmt::format("revision {} by {} at {} \"{}\"", r.revision, r.author, time_text(r.at),
                     r.comment));
    print_changes(r.changes);
  }
}

void World::print(const proto::PriorityTuplesReply& m) {
  for (const proto::PriorityRow& row : m.rows) {
    std::string text =
        fmt::format("{}. job {} of {} in {}: rank {}, priority {}", row.place, row.job.value(),
                    row.user, row.partition, row.rank, row.priority);
    for (const proto::PriorityTerm& t : row.terms) text += fmt::format(" {}={}", t.name, t.points);
    line(text);
  }
}

void World::print(const proto::TenantUsageReply& m) {
  for (const proto::TenantUse& row : m.rows) {
    std::string text = fmt::format("{}{}: {} queued, {} run", row.is_cohort ? "cohort " : "",
                                   row.name, row.queued, row.running);
    for (const proto::QuotaUse& q : row.cells)
      text += fmt::format("; {} of {}, borrowed {}, lent {}, {} left", amount(q.resource, q.used),
                          amount(q.resource, q.nominal), amount(q.resource, q.borrowed),
                          amount(q.resource, q.lent), amount(q.resource, q.available));
    line(text);
  }
}

}  // namespace gantry::core::test
