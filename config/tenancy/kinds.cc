#include "config/tenancy/kinds.h"

#include <algorithm>

namespace gantry::tenancy {
namespace {

// The fields that a tenant has and that its tier may give.
std::vector<Field> shared_fields(Tenant& t) {
  JobLimits& jobs = t.jobs;
  CountLimits& counts = t.counts;
  IdleGpuLimits& idle = t.idle_gpus;
  return {
      {"description", &t.description, Form::plain, "For people."},
      {"labels", &t.labels, Form::plain, "`cost-center: cc-1042` and the like, for reports."},
      {"weight", &t.weight, Form::weight,
       "Its part of what is borrowed, against the others of its cohort; 1 unless given."},
      {"quota", &t.quota, Form::plain,
       "Amounts by resource, and below `flavors` by kind of node. A resource without a line is not "
       "limited."},
      {"reclaim", &t.reclaim, Form::plain,
       "Whose jobs end when it wants back what it lent: `any` borrower's (the default), those of a "
       "`lower-class`, or `never`."},
      {"default_class", &t.default_class, Form::word,
       "Priority class of jobs that name none; the cluster's default unless given."},
      {"allowed_classes", &t.allowed_classes, Form::words,
       "Priority classes its jobs may name; all that do not preempt unless given."},
      {"classes", &t.classes, Form::plain,
       "Classes of its own, `name: value`: they order its jobs among themselves."},
      {"node_pools", &t.node_pools, Form::words,
       "Pools its jobs may use, besides its own; all shared nodes unless given."},
      {"projects", &t.projects, Form::plain,
       "Accounts: `shares` of the tenant, and `users` with their shares, if it is theirs only. "
       "`parent` names another project, whose limits of use hold for its jobs too; for the fair "
       "share it stands beside that. `description` and `organization` are for people."},
      {"roles", &t.grants, Form::plain,
       "By role (`viewer`, `user`, `tenant-admin`, of the whole cluster `auditor`, `operator`, "
       "`admin`, or the name of a Role), the `users` and `groups` of the operating system that "
       "have it, and, by name, when that ends: `until: {ann: 2026-12-31}`, in UTC."},
      {"label_rules", &t.label_rules, Form::plain,
       "Labels that its jobs must have (`--label KEY=VALUE`): by key the `values` that are "
       "allowed, and the `default` of jobs that do not say; without a default these are refused."},
      {"own_queue", &t.own_queue, Form::plain,
       "Whether it has a queue of its name. With `false` its jobs go to the partitions of "
       "gantry.yaml, to the default one unless they name one. true."},
      {"defaults.time", &jobs.default_time, Form::plain, "Time limit of jobs that give none."},
      {"defaults.cpus", &jobs.default_cpus, Form::plain, "Cores of each task that asks for none."},
      {"defaults.memory_per_cpu", &jobs.default_memory_per_cpu, Form::bytes,
       "Memory for each core of jobs that ask for none."},
      {"defaults.io", &jobs.default_io, Form::rate,
       "`--io` of jobs that name none: bytes per second of each node's disks."},
      {"defaults.net", &jobs.default_net, Form::rate,
       "`--net` of jobs with a network of their own that name none: bits per second of each node."},
      {"limits.time", &jobs.max_time, Form::plain, "Longest time limit of a job."},
      {"limits.nodes", &jobs.max_nodes, Form::plain, "Most nodes of a job."},
      {"limits.host_network", &jobs.host_network, Form::plain,
       "Whether jobs may ask for the network of the host (`--network=host`); in a partition of "
       "gantry.yaml that has to allow it as well. false."},
      {"network.default", &t.network.default_profile, Form::word,
       "NetworkProfile of jobs that name none; `basic` unless given."},
      {"network.profiles", &t.network.profiles, Form::words,
       "NetworkProfiles that jobs may name (`--network=job,NAME`), besides the default one and "
       "`own`."},
      {"network.services", &t.network.services, Form::words,
       "NetworkServices that are part of its profile `basic`."},
      {"security.enforce", &t.security.enforce, Form::plain,
       "How much of the host its jobs may ask for: what breaks this profile is refused. "
       "[security-profiles.md](security-profiles.md) has the profiles. `privileged` where "
       "limits.host_network is true, otherwise `restricted`."},
      {"security.audit", &t.security.audit, Form::plain,
       "A profile of which the controller's log says what breaks it; none unless given."},
      {"security.warn", &t.security.warn, Form::plain,
       "A profile of which the submitter is told what breaks it; none unless given."},
      {"security.registries", &t.security.registries, Form::registries,
       "Where images of jobs come from: `registry.example.com`, or a part of it, "
       "`ghcr.io/our-group`. Files and directories of the nodes are refused then. From anywhere "
       "unless given."},
      {"security.images_by_digest", &t.security.images_by_digest, Form::plain,
       "Whether images must be named by digest (`IMAGE@sha256:...`), so that what runs is what was "
       "looked at. false."},
      {"security.sandbox", &t.security.sandbox, Form::plain,
       "Sandbox of jobs that name none, and the weakest that a job may name (`--sandbox`): "
       "standard, hardened, gvisor or vm. standard."},
      {"security.sandboxes", &t.security.sandboxes, Form::words,
       "Sandboxes that jobs may name beside that one; all stronger ones unless given."},
      {"limits.keep_others_off", &jobs.keep_others_off, Form::plain,
       "Whether jobs may ask for `--exclusive=tenant` and `--exclusive=user`, which keep other "
       "jobs off whole nodes while quota and money count only the cores asked for. false."},
      {"limits.per_job", &jobs.max_per_job, Form::plain, "Most that one job may ask for."},
      {"limits.per_node", &jobs.max_per_node, Form::plain, "Most that a job may ask of one node."},
      {"limits.queued_jobs", &counts.queued_jobs, Form::plain,
       "Jobs in the queue; 0: none is accepted any more."},
      {"limits.queued_jobs_per_user", &counts.queued_jobs_per_user, Form::plain,
       "Jobs of one user in the queue."},
      {"limits.running_jobs", &counts.running_jobs, Form::plain, "Jobs at one time."},
      {"limits.array_tasks", &counts.array_tasks, Form::plain, "Tasks of one array."},
      {"limits.reservations", &counts.reservations, Form::plain,
       "Reservations that name it, at one time."},
      {"limits.submits_per_minute", &counts.submits_per_minute, Form::plain,
       "Submissions of all its users together."},
      {"limits.service_requests", &counts.service_requests, Form::plain,
       "Requests a second to all its services together, at each gate; above: 429."},
      {"idle_gpus.note", &idle.note, Form::plain,
       "A GPU that a job has and does not use for so long makes an event (`gtenant events`)."},
      {"idle_gpus.warn", &idle.warn, Form::plain, "And its owner is told, by mail and in the job."},
      {"idle_gpus.requeue", &idle.requeue, Form::plain,
       "A job that uses none of its GPUs for so long goes back to the queue, if it may."},
      {"idle_gpus.cancel", &idle.cancel, Form::plain, "And is cancelled."},
  };
}

}  // namespace

std::vector<Field> fields_of(Tenant& t) {
  std::vector<Field> fields{
      {"name", &t.name, Form::word, "Of the tenant and of its queue: `gbatch -p NAME`."},
      {"cohort", &t.cohort, Form::word, "Where it borrows and lends; nowhere unless given."},
      {"tier", &t.tier, Form::word, "Gives it what it does not say itself."},
      {"organization", &t.organization, Form::plain, "For people: the organization that it is of."},
      {"default_accounts", &t.default_accounts, Form::plain,
       "For each user, the account (a project, or the tenant by its name) of jobs that name none. "
       "A user has one in one tenant."},
      {"associations", &t.associations, Form::plain,
       "Limits of use of its accounts and their users, by `ACCOUNT` or `ACCOUNT/USER`, as "
       "`GrpTRES=node=4|MaxJobs=2`; an account is the tenant or a project of it. The names are "
       "those of `sacctmgr`."},
      {"storage.path", &t.storage.path, Form::plain,
       "A directory on the nodes, below one of `noded.storage`, that its jobs see at this path, "
       "and nobody else's. [storage.md](storage.md) explains it."},
      {"storage.project", &t.storage.project, Form::plain,
       "Number, 1 to 4294967295, under which the nodes' file systems count what lies there; no two "
       "tenants have the same. Needed for the next two."},
      {"storage.size", &t.storage.size, Form::bytes,
       "How much may lie there: `10Ti`. Kept where the file system has quotas of projects."},
      {"storage.files", &t.storage.files, Form::plain, "How many files may lie there."},
      {"storage.endpoint", &t.storage.objects.endpoint, Form::plain,
       "Of an object store that speaks S3, for `--stage-in` and `--stage-out`: "
       "`https://HOST[:PORT]`."},
      {"storage.region", &t.storage.objects.region, Form::plain, "Its region; none unless given."},
      {"storage.bucket", &t.storage.objects.bucket, Form::plain, "The tenant's bucket there."},
      {"storage.prefix", &t.storage.objects.prefix, Form::plain,
       "Prefix of all the tenant's keys, with `/` at its end: `teams/fraud/`. All keys of the "
       "bucket unless given."},
      {"storage.credentials", &t.storage.objects.credentials, Form::word,
       "The tenant's secret with its keys to this prefix: ACCESS_KEY:SECRET_KEY, or a file of "
       "AWS's form."}};
  for (Field& field : shared_fields(t)) fields.push_back(field);
  return fields;
}

std::vector<Field> fields_of(Cohort& c) {
  return {{"name", &c.name, Form::word, "Of the cohort."},
          {"parent", &c.parent, Form::word, "The cohort it is part of; none unless given."},
          {"weight", &c.weight, Form::weight, "As of a tenant, against its siblings; 1."},
          {"quota", &c.quota, Form::plain, "Of its own, besides what its members lend."}};
}

std::vector<Field> fields_of(Tier& t) {
  std::vector<Field> fields{{"name", &t.name, Form::word, "Of the tier."}};
  for (Field& field : shared_fields(t.defaults)) fields.push_back(field);
  return fields;
}

std::vector<Field> fields_of(PriorityClass& c) {
  return {{"name", &c.name, Form::word, "Of the class: `gbatch --priority-class NAME`."},
          {"value", &c.value, Form::plain, "Higher goes first; 500."},
          {"description", &c.description, Form::plain, "For people."},
          {"default", &c.is_default, Form::plain, "Of jobs that name no class; one class can be."},
          {"preempts", &c.preempts, Form::plain, "May take nodes from lower classes; false."},
          {"preemptible", &c.preemptible, Form::plain,
           "May be taken from, by a higher class or an owner's reclaim; true."},
          {"victim_mode", &c.victim_mode, Form::plain,
           "What becomes of its jobs then: `requeue` or `cancel`; `suspend` is refused, as a "
           "suspended job keeps its memory and GPUs."},
          {"grace", &c.grace, Form::plain, "From the signal to the kill; 30s."},
          {"min_run_time", &c.min_run_time, Form::plain,
           "A job that has run for less is not preempted; 0s."},
          {"max_preemptions", &c.max_preemptions, Form::plain,
           "How often one job may be preempted; no limit unless given."},
          {"age_step", &c.age_step, Form::plain,
           "Each time that a job has waited this long, its value rises by one, but never to that "
           "of a class that preempts; no ageing unless given."},
          {"limits", &c.limits, Form::plain,
           "What its jobs may use, by the names of `sacctmgr`: `GrpTRES: cpu=8`, `MaxJobsPerUser: "
           "2`, `Flags: DenyOnLimit`, `UsageFactor: 2`."},
          {"victims", &c.victims, Form::words,
           "With `preempts`: the classes that it may take from, and no others, whatever their "
           "values are; all lower ones unless given."}};
}

std::vector<Field> fields_of(Flavor& f) {
  return {{"name", &f.name, Form::word, "Of the flavor, for quota."},
          {"node_pool", &f.node_pool, Form::word, "Nodes of this pool; any unless given."},
          {"gpu_model", &f.gpu_model, Form::gpu_model, "Nodes with this GPU; any unless given."},
          {"features", &f.features, Form::words, "Nodes with all of these features."},
          {"charge", &f.charge, Form::charge,
           "Fair-share charge per second of a `gpu`, a core (`cpu`), a GiB of `memory` and of "
           "`scratch`, a GB/s of `io` and a Gbit/s of `net`."}};
}

std::vector<Field> fields_of(NodePool& p) {
  return {{"name", &p.name, Form::word, "Of the pool."},
          {"nodes", &p.nodes, Form::hosts, "A host list; with `features`, those of it."},
          {"features", &p.features, Form::words, "Nodes with all of these features."},
          {"tenant", &p.tenant, Form::word,
           "Whose own nodes these are: nobody else sees or uses them; shared unless given."},
          {"taints", &p.taints, Form::words, "Only jobs that tolerate all of them."},
          {"gpu_jobs_only", &p.gpu_jobs_only, Form::plain, "Work without GPUs is kept off; false."},
          {"spread", &p.spread, Form::plain, "The emptiest node first, not the fullest; false."}};
}

std::vector<Field> fields_of(Topology& t) {
  return {{"name", &t.name, Form::word, "Of the topology; a cluster has one."},
          {"levels", &t.levels, Form::words, "From the widest to the narrowest, nodes left out."},
          {"domains", &t.domains, Form::plain, "By level and name, the host list of each domain."}};
}

std::vector<Field> fields_of(PriceBook& b) {
  return {
      {"name", &b.name, Form::word, "Of the book."},
      {"description", &b.description, Form::plain, "For people."},
      {"from", &b.from, Form::date,
       "In force from then on, until another book's date comes; always unless given."},
      {"currency", &b.currency, Form::word, "Of all price books; one of them has to name it."},
      {"time_zone", &b.zone, Form::plain,
       "Of all books: where months end and hours of the day are, by name or as a rule; UTC."},
      {"tenant_time_zones", &b.tenant_zones, Form::plain,
       "For each tenant in another time zone: that zone, which decides where its months end and "
       "its hours are."},
      {"issuer", &b.issuer, Form::plain,
       "Of all price books: the issuer of invoices, as name and address; the cluster unless "
       "given."},
      {"gpu", &b.gpu, Form::plain,
       "Per GPU and hour by model, `MODEL:PROFILE` per MIG slice, `MODEL:shared` per share of "
       "a GPU's time, and the `default` of unknown models. Slices and shares without a price "
       "cost their part of the GPU's."},
      {"cpu", &b.cpu, Form::plain, "Per core and hour; 0."},
      {"memory", &b.memory, Form::plain, "Per GiB and hour; 0."},
      {"scratch", &b.scratch, Form::plain, "Per GiB and hour; 0."},
      {"io", &b.io, Form::plain, "Per GB/s of `--io` and hour; 0."},
      {"net", &b.net, Form::plain, "Per Gbit/s of `--net` and hour; 0."},
      {"meters", &b.meters, Form::meters,
       "For each meter, the price of one unit of what `gtenant meter` imports: "
       "`storage-gib-month`."},
      {"overhead", &b.overhead, Form::sum,
       "For each name, a cost that is charged to all tenants together for a month, each in "
       "proportion to "
       "what its jobs cost."},
      {"platform_cost", &b.platform_cost, Form::sum,
       "What the cluster costs in a month; `greport` shows how much of it is recovered."},
      {"plans", &b.plans, Form::plain,
       "For each plan, a `factor` for jobs of `classes`, `projects` (TENANT/PROJECT), `tenants` or "
       "`tiers`; of several the lowest counts."},
      {"hours", &b.hours, Form::plain,
       "For each name, a `factor` that applies `from` one time of the day `until` another, on "
       "`days`; of several the lowest counts."},
      {"credits.preempted", &b.preempted, Form::plain,
       "What is credited for a preempted attempt: `none`, what was `lost` since its "
       "newest checkpoint, or `all`; none."},
      {"credits.node_failure", &b.node_failure, Form::plain,
       "The same for an attempt that ended because its node or GPU failed; lost."},
      {"credits.launch_failure", &b.launch_failure, Form::plain,
       "The same for an attempt that never started because of its node; all."}};
}

std::vector<Field> fields_of(Budget& b) {
  return {
      {"name", &b.name, Form::word, "Of the budget."},
      {"description", &b.description, Form::plain, "For people."},
      {"tenant", &b.tenant, Form::word, "Whose jobs it pays."},
      {"project", &b.project, Form::word, "Only those of this project; all unless given."},
      {"user", &b.user, Form::plain, "Only those of this user; all unless given."},
      {"amount", &b.amount, Form::sum, "What they may cost in a period, less what is credited."},
      {"period", &b.period, Form::plain,
       "`month` (the default), `quarter`, `year` or `week` of the tenant's time zone, or `fixed`."},
      {"from", &b.from, Form::date, "Start of a fixed budget."},
      {"until", &b.until, Form::date, "End of a fixed budget; after it, it limits no jobs."},
      {"warn_at", &b.warn_at, Form::plain,
       "Per cent that are spent, `[50, 80]`: each makes an event; 100 always does."},
      {"at_limit", &b.at_limit, Form::plain,
       "What happens to jobs for which the budget has not enough left: `warn` (they start), "
       "`lower-class`, "
       "`hold` (they wait; the default), or `stop`: as hold, and those that run are ended when it "
       "is used up all the same."},
      {"lower_to", &b.lower_to, Form::word, "For lower-class: the priority class."},
      {"grace", &b.grace, Form::plain, "For stop: the time from the signal to the kill; 1m."},
  };
}

std::vector<Field> fields_of(Manifest& m) {
  return {{"name", &m.name, Form::plain, "KIND/NAMESPACE/NAME of the object."},
          {"text", &m.text, Form::plain, "The object."},
          {"user_domain", &m.user_domain, Form::plain, "`--user-domain` when it was applied."}};
}

std::vector<Field> fields_of(OtherCluster& c) {
  return {{"name", &c.name, Form::word, "Of the other cluster."},
          {"description", &c.description, Form::plain, "For people."},
          {"accounting", &c.accounting, Form::plain,
           "Its accounts and users with their limits, as `sacctmgr` was told of them: rows of "
           "KEY=VALUE, parted by bars."}};
}

std::vector<Field> fields_of(LicenseResource& c) {
  return {{"name", &c.name, Form::plain, "NAME@SERVER, as jobs ask for it."},
          {"count", &c.count, Form::plain, "How many there are, of all clusters."},
          {"server_type", &c.server_type, Form::plain, "For people."},
          {"description", &c.description, Form::plain, "For people."},
          {"percent", &c.percent, Form::plain,
           "For each cluster, the percentage that its jobs may hold at one time."}};
}

std::vector<Field> fields_of(NetworkProfile& p) {
  return {
      {"name", &p.name, Form::word, "Of the profile: `gbatch --network=job,NAME`."},
      {"description", &p.description, Form::plain, "For people."},
      {"same_tenant", &p.same_tenant, Form::plain,
       "The other jobs of the job's tenant whose profile says so too, by IPv6; false."},
      {"resolvers", &p.resolvers, Form::plain,
       "The site's name servers, at port 53 (`noded.resolvers` of gantry.yaml); false."},
      {"internet", &p.internet, Form::plain,
       "Everything but private and reserved ranges, the cluster, and metadata services; false."},
      {"services", &p.services, Form::words, "NetworkServices."},
      {"to", &p.to, Form::ranges,
       "Ranges of addresses, each with or without ports: `10.1.0.0/16 tcp/443`."},
      {"to_tenants", &p.to_tenants, Form::peers,
       "Tenants whose jobs it may connect to, each with or without ports: `data tcp/8080`. The "
       "profile of such a job has to name this tenant in `from_tenants`. By IPv6."},
      {"from_tenants", &p.from_tenants, Form::peers,
       "Tenants whose jobs may connect to this job, each with or without ports."},
      {"proxy", &p.proxy, Form::plain,
       "Address and port of an HTTP proxy, which decides by names of hosts: `10.1.0.9 tcp/3128`. "
       "Jobs reach it, and have it in `http_proxy`, `https_proxy` and their capital forms."},
  };
}

std::vector<Field> fields_of(NetworkService& s) {
  return {{"name", &s.name, Form::word, "Of the service, for profiles and tenants."},
          {"description", &s.description, Form::plain, "For people."},
          {"to", &s.to, Form::ranges,
           "Its addresses, each with or without ports: `10.1.0.7 tcp/443`."}};
}

std::vector<Field> fields_of(Document& document) {
  return std::visit([](auto& d) { return fields_of(d); }, document);
}

namespace {

template <class... T>
std::optional<Document> make(std::string_view kind, const std::variant<T...>*) {
  std::optional<Document> out;
  ((kind == T::kName ? (out = Document(T{}), 0) : 0), ...);
  return out;
}
template <class... T>
std::vector<std::string_view> names(const std::variant<T...>*) {
  return {T::kName...};
}

}  // namespace

std::optional<Document> empty_document(std::string_view kind) {
  return make(kind, static_cast<const Document*>(nullptr));
}

std::vector<std::string_view> kind_names() {
  return names(static_cast<const Document*>(nullptr));
}

}  // namespace gantry::tenancy
