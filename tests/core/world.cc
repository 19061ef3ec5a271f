// Runs the commands of scenarios; see world.h.
#include "world.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <sstream>

#include "common/assert.h"
#include "common/proto/job_text.h"
#include "common/proto/messages.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"
#include "common/text/text.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/sched/cycle/schedule.h"

namespace gantry::core::test {

constexpr ConnectionId kConnection{1};

Words split_words(std::string_view line) {
  Words out;
  std::size_t at = 0;
  while (at < line.size()) {
    std::string word;
    bool quoted = false;
    for (; at < line.size() && (quoted || line[at] != ' '); ++at) {
      if (line[at] == '"')
        quoted = !quoted;
      else
        word += line[at];
    }
    ++at;
    if (word.empty()) continue;
    const auto equals = word.find('=');
    if (equals == std::string::npos)
      out.plain.push_back(word);
    else
      out.named[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return out;
}

Duration parse_length(const std::string& text) {
  const std::int64_t n = std::stoll(text);
  switch (text.back()) {
    case 'h': return hours(n);
    case 'm': return minutes(n);
    default: return seconds(n);
  }
}

std::vector<std::string> listed(const std::string& text) {
  return split(text, ',');
}
std::vector<std::string> hosts(const std::string& text) {
  return expand_hostlist(text).value();
}

namespace {

NodeConfig node_of(const Words& w, const std::string& name) {
  NodeConfig node;
  node.name = name;
  node.cpus = w.find("cpus") ? std::stoul(*w.find("cpus")) : 4;
  node.memory = w.find("mem") ? *parse_memory(*w.find("mem")) : std::int64_t{8} << 30;
  if (w.find("features")) node.features = {*w.find("features")};
  if (w.find("gpus")) node.gpus = std::stoul(*w.find("gpus"));
  if (w.find("gpu_model")) node.gpu_model = *w.find("gpu_model");
  if (w.find("sharing")) node.gpu_sharing = GpuSharing::time_slicing;
  if (w.find("shards")) node.gpu_shards = std::stoul(*w.find("shards"));
  if (w.find("gres")) node.gres = {*w.find("gres")};
  return node;
}

PartitionConfig partition_of(const Words& w, bool is_first) {
  PartitionConfig p;
  p.name = w.plain.at(1);
  p.is_default = is_first;
  p.nodes = hosts(*w.find("nodes"));
  if (w.find("max_time")) p.max_time = parse_length(*w.find("max_time"));
  if (w.find("default_time")) p.default_time = parse_length(*w.find("default_time"));
  if (w.find("max_nodes")) p.max_nodes = std::stoul(*w.find("max_nodes"));
  if (w.find("priority")) p.priority = std::stoul(*w.find("priority"));
  p.allow_host_network = w.find("host_network") != nullptr;
  const auto list = [&](const char* key, std::vector<std::string>& to) {
    if (w.find(key)) to = listed(*w.find(key));
  };
  list("allow_accounts", p.allow_accounts);
  list("deny_accounts", p.deny_accounts);
  list("allow_groups", p.allow_groups);
  list("allow_qos", p.allow_qos);
  list("deny_qos", p.deny_qos);
  if (w.find("qos")) p.qos = *w.find("qos");
  if (w.find("billing")) p.billing_weights = *w.find("billing");
  p.exclusive_nodes = w.find("exclusive") != nullptr;
  return p;
}

void set_options(const Words& w, ControllerConfig& c) {
  if (w.find("max_requeues")) c.max_requeues = std::stoul(*w.find("max_requeues"));
  if (w.find("fence_after")) {
    c.lost_node_policy = LostNodePolicy::fence;
    c.fence_after = parse_length(*w.find("fence_after"));
  }
  if (w.find("min_job_age")) c.min_job_age = parse_length(*w.find("min_job_age"));
  if (w.find("heartbeat")) c.heartbeat = parse_length(*w.find("heartbeat"));
  if (w.find("node_timeout")) c.node_timeout = parse_length(*w.find("node_timeout"));
  if (w.find("keep_apart")) c.keep_apart = parse_length(*w.find("keep_apart"));
  const auto weight = [&](const char* key, std::uint32_t& to) {
    if (w.find(key)) to = std::stoul(*w.find(key));
  };
  weight("weight_age", c.priority_weight_age);
  weight("weight_fairshare", c.priority_weight_fairshare);
  weight("weight_job_size", c.priority_weight_job_size);
  weight("weight_partition", c.priority_weight_partition);
  weight("weight_class", c.priority_weight_class);
  if (w.find("max_age")) c.priority_max_age = parse_length(*w.find("max_age"));
  if (w.find("mail")) c.mail_program = *w.find("mail");
  if (w.find("issuer")) c.identity_issuer = *w.find("issuer");
  if (w.find("report_labels")) c.report_labels = listed(*w.find("report_labels"));
  if (w.find("user_triggers")) c.user_triggers = *w.find("user_triggers") == "yes";
  if (w.find("one_cohort")) c.one_cohort = *w.find("one_cohort") == "yes";
  if (w.find("max_jobs")) c.max_jobs = std::stoul(*w.find("max_jobs"));
  weight("max_user_jobs", c.max_user_jobs);
  weight("max_user_triggers", c.max_user_triggers);
  weight("max_job_steps", c.max_job_steps);
  if (w.find("max_user_bytes")) c.max_user_bytes = std::stol(*w.find("max_user_bytes"));
}

}  // namespace

World::World()
    : store_(store::MemoryStore::Options{.keep_everything = true}),
      replica_(std::make_unique<sched::Replica>()),
      begin_{1'767'225'600'000'000},  // the beginning is 2026-01-01T00:00:00Z
      now_(begin_) {
  uids_ = {{"root", 0},   {"admin", 10},   {"alice", 1001},
           {"bob", 1002}, {"carol", 1003}, {"dave", 1004}};
  // In most scenarios the documents say which tenants share their quota. `set one_cohort=yes`
  // switches on the program's default, a single cohort.
  config_.controller.one_cohort = false;
}
World::~World() = default;

void World::configure(const Words& w) {
  const std::string& verb = w.plain.at(0);
  if (verb == "cluster") {
    for (const std::string& name : hosts(w.plain.at(1))) {
      const NodeConfig& node = config_.nodes.emplace_back(node_of(w, name));
      nodes_[name] = FakeNode{name, false, 0,  "boot1", node.cpus, node.memory,
                              {},   {},    {}, false,   node.gres, {}};
    }
  } else if (verb == "partition") {
    // a restart makes the partition again
    std::erase_if(config_.partitions, [&](const PartitionConfig& old) {
      return core_ != nullptr && old.name == w.plain.at(1);
    });
    config_.partitions.push_back(partition_of(w, config_.partitions.empty()));
  } else {
    if (w.find("licenses")) config_.licenses = listed(*w.find("licenses"));
    set_options(w, config_.controller);
    if (w.find("root_jobs")) config_.noded.allow_root_jobs = *w.find("root_jobs") == "yes";
  }
}

void World::start() {
  if (config_.partitions.empty()) {
    PartitionConfig p;
    p.name = "main";
    p.is_default = true;
    for (const NodeConfig& node : config_.nodes) p.nodes.push_back(node.name);
    config_.partitions.push_back(p);
  }
  core_ = std::make_unique<Core>(config_);
  const auto started = core_->start(now_);
  GANTRY_ASSERT(started.has_value(), "a new core starts");
  finish_turn();
  for (const sched::Change& change : core_->full_view()) replica_->apply(change);
}

std::string World::run(std::string_view text) {
  out_.clear();
  const Words w = split_words(text);
  const std::string& verb = w.plain.at(0);
  const bool before = verb == "cluster" || verb == "partition" || verb == "set";
  if (before) configure(w);
  if (!before && !core_) start();
  if (verb == "together")
    submit_together(w.plain.at(1), text);
  else if (!before)
    command(verb, w);
  // An unused word in a command would make a scenario misleading.
  for (const auto& [key, value] : w.named)
    if (verb != "together" && !w.asked.contains(key))
      line(fmt::format("{} has no word {}", verb, key));
  if (before) return out_;
  const std::string wrong = core_->audit();
  if (!wrong.empty()) line("AUDIT: " + wrong);
  const std::string replica = replica_->audit();
  if (!replica.empty()) line("REPLICA: " + replica);
  return out_;
}

void World::command(const std::string& verb, const Words& w) {
  if (verb == "submit") return ask(w.plain.at(1), submit_message(w.plain.at(1), w));
  if (verb == "cancel") return cancel(w);
  if (verb == "key")  // key alice a1b2 [of=bob] [remove=yes]: the key is a1b2, filled up with zeros
    return ask(w.plain.at(1),
               proto::RegisterKey{w.find("of") ? *w.find("of") : who(w.plain.at(1)).owner.user,
                                  w.plain.at(2) + std::string(64 - w.plain.at(2).size(), '0'),
                                  w.find("remove") != nullptr});
  if (verb == "hold" || verb == "release" || verb == "requeue" || verb == "end" ||
      verb == "suspend" || verb == "resume" || verb == "notify" || verb == "top")
    return change(verb, w);
  if (verb == "update") return update(w);
  if (verb == "plan") return plan();
  if (verb == "place") return place(w);
  if (verb == "advance") return advance(parse_length(w.plain.at(1)));
  if (verb == "queue") return queue(w);
  if (verb == "why" || verb == "show") return show(w);
  if (verb == "neighbours") return neighbours(w);
  if (verb == "history") return history();
  if (verb == "nodes") return list_nodes();
  if (verb == "parts") return list_partitions();
  if (verb == "node" || verb == "part") return nodes_command(w);
  if (verb == "step" || verb == "stepdone" || verb == "stepsignal" || verb == "stepattach")
    return step_command(w);
  if (verb == "trigger" || verb == "triggers" || verb == "untrigger") return trigger(verb, w);
  if (verb == "wait") return wait(w);
  if (verb == "log") {  // log alice 1 | log alice 1 err=yes
    proto::ReadLog m;
    m.job = *parse_job_ref(w.plain.at(2));
    m.std_err = w.find("err") != nullptr;
    return ask(w.plain.at(1), std::move(m));
  }
  if (verb == "restart") return restart();
  if (verb == "copy") return void(copy_ = store_);
  if (verb == "accept") return accept_copy();
  if (verb == "stopped") {  // the controller's process is stopped for this long
    now_ = now_ + parse_length(w.plain.at(1));
    return;
  }
  if (verb == "reconfigured") return step(Reconfigured{});
  if (verb == "fold") return fold();
  if (verb == "quiet") {
    quiet_ = w.plain.size() < 2 || w.plain[1] == "on";
    return;
  }
  if (verb == "up") {
    for (const std::string& name : hosts(w.plain.at(1))) register_node(nodes_.at(name));
    return;
  }
  if (rules_command(verb, w) || tenants_command(verb, w) || reservations_command(verb, w) ||
      money_command(verb, w) || secrets_command(verb, w) || services_command(verb, w) ||
      enroll_command(verb, w))
    return;
  const auto node = nodes_.find(verb);
  if (node == nodes_.end()) return line("there is no command " + verb);
  node_says(node->second, w);
}

// The name "alice+token" means alice with a token that is valid for another hour.
Identity World::who(const std::string& name) const {
  Identity id;
  const std::string user = name.substr(0, name.find('+'));
  if (user != name) id.token_ends = now_ + hours(1);
  id.owner.uid = Uid(uids_.at(user));
  id.owner.gid = Gid(uids_.at(user));
  id.owner.user = user;
  id.groups = {user};
  id.role = user == "admin" || user == "root" ? proto::Role::admin : proto::Role::user;
  return id;
}

void World::step(Input input) {
  core_->step(now_, std::move(input));
  finish_turn();
}

void World::ask(const std::string& user, ClientMessage message) {
  step(ClientRequest{kConnection, next_request_++, who(user), std::move(message)});
}

void World::finish_turn() {
  Turn turn = core_->take_turn();
  const auto done = store_.append(turn.append);
  GANTRY_ASSERT(done.has_value(), "the memory store takes it");
  for (const sched::Change& change : turn.changes) replica_->apply(change);
  for (const std::string& note : turn.notes) line("note: " + note);
  for (Reply& reply : turn.replies) {
    GANTRY_ASSERT(fill(reply, store_).has_value(), "the store has the script");
    print(reply);
  }
  for (Order& order : turn.orders) print(order);
  for (const Letter& letter : turn.letters)
    line(fmt::format("mail to {}: {}", fmt::join(letter.to, ", "), letter.subject));
  for (const ProgramRun& run : turn.programs)
    line(fmt::format("run as {}: {} {}", run.user, run.program, run.argument));
  wake_ = turn.wake;
}

void World::change(const std::string& verb, const Words& w) {
  std::vector<proto::JobRef> refs;
  for (std::size_t i = 2; i < w.plain.size(); ++i) refs.push_back(*parse_job_ref(w.plain[i]));
  const std::string& user = w.plain.at(1);
  if (verb == "hold") ask(user, proto::HoldJobs{refs});
  if (verb == "suspend") ask(user, proto::SuspendJobs{refs});
  if (verb == "top") ask(user, proto::TopJobs{refs});
  if (verb == "notify") ask(user, proto::NotifyJobs{refs, w.find("text") ? *w.find("text") : ""});
  if (verb == "resume") ask(user, proto::ResumeJobs{refs});
  if (verb == "release") ask(user, proto::ReleaseJobs{refs});
  if (verb == "requeue") ask(user, proto::RequeueJobs{refs, w.find("hold") != nullptr});
  if (verb == "end")
    ask(user,
        proto::EndAllocation{refs.at(0).job, {w.find("code") ? std::stoi(*w.find("code")) : 0, 0}});
}

void World::cancel(const Words& w) {
  proto::CancelJobs m;
  for (std::size_t i = 2; i < w.plain.size(); ++i) {
    if (w.plain[i] == "mine")
      m.all_mine = true;
    else
      m.filter.jobs.push_back(*parse_job_ref(w.plain[i]));
  }
  if (w.find("user")) m.filter.users = {*w.find("user")};
  if (w.find("name")) m.filter.names = {*w.find("name")};
  if (w.find("state")) m.filter.states = {*w.find("state")};
  if (w.find("partition")) m.filter.partitions = {*w.find("partition")};
  if (const std::string* text = w.find("signal")) m.signal = parse_signal(*text).value_or(99);
  if (w.find("batch")) m.scope = proto::SignalScope::batch_shell;
  ask(w.plain.at(1), std::move(m));
}

void World::update(const Words& w) {
  proto::UpdateJob m;
  m.job = *parse_job_ref(w.plain.at(2));
  if (w.find("time")) m.time_limit = parse_length(*w.find("time"));
  if (w.find("nice")) m.nice = std::stoi(*w.find("nice"));
  if (w.find("priority")) m.priority = std::stoul(*w.find("priority"));
  if (w.find("partition")) m.partition = *w.find("partition");
  if (w.find("name")) m.name = *w.find("name");
  if (w.find("account")) m.account = *w.find("account");
  if (w.find("reservation")) m.reservation = *w.find("reservation");
  if (w.find("begin")) m.begin = time_of(*w.find("begin"));
  const auto number = [&](const char* key) -> std::optional<std::uint32_t> {
    if (w.find(key) == nullptr) return std::nullopt;
    return static_cast<std::uint32_t>(std::stoul(*w.find(key)));
  };
  proto::Reshape shape;
  shape.min_nodes = shape.max_nodes = number("nodes");
  shape.tasks = number("tasks");
  shape.cpus_per_task = number("cpus");
  if (w.find("mem")) shape.memory_per_node = *parse_memory(*w.find("mem"));
  if (w.find("on")) shape.required_nodes = hosts(*w.find("on"));
  if (w.find("not_on")) shape.excluded_nodes = hosts(*w.find("not_on"));
  if (w.find("features")) shape.constraint = *w.find("features");
  for (const char* key : {"nodes", "tasks", "cpus", "mem", "on", "not_on", "features"})
    if (w.find(key) != nullptr) m.reshape = shape;
  if (w.find("requeue")) m.requeue = *w.find("requeue") == "yes";
  if (w.find("limit")) m.array_max_running = std::stoul(*w.find("limit"));
  ask(w.plain.at(1), std::move(m));
}

void World::nodes_command(const Words& w) {  // node drain n1|rack=r1 reason="..."
  const std::string& what = w.plain.at(1);
  if (w.plain[0] == "part") return partition_command(w);
  proto::UpdateNodes m;
  if (w.plain.size() > 2) m.nodes = hosts(w.plain.at(2));
  if (w.find("rack")) m.domains = {*w.find("rack")};
  for (const auto& [value, name] : enum_names(m.action))
    if (name == what) m.action = value;
  if (w.find("reason")) m.reason = *w.find("reason");
  if (w.find("gpu")) m.gpus = {*w.find("gpu")};
  ask(w.find("by") ? *w.find("by") : "admin", std::move(m));
}

void World::plan() {
  sched::Plan plan = sched::schedule(*replica_, now_, sched::Policy{});
  if (plan.starts.empty()) line("nothing starts");
  step(PlanReady{std::move(plan)});
}

void World::place(const Words& w) {  // place 1 n1:0-1 n2:0 mem=1G
  sched::Start start;
  start.job = job_id(w.plain.at(1));
  for (std::size_t i = 2; i < w.plain.size(); ++i) {
    const auto colon = w.plain[i].find(':');
    sched::NodeGrant grant;
    grant.node = core_->state().node_named(w.plain[i].substr(0, colon))->id;
    const ArraySpec cpus = *parse_index_ranges(w.plain[i].substr(colon + 1));
    for (const IndexRange& r : cpus.ranges)
      for (std::uint32_t cpu = r.first; cpu <= r.last; ++cpu)
        grant.cpus.push_back(static_cast<std::uint16_t>(cpu));
    grant.memory = w.find("mem") ? *parse_memory(*w.find("mem")) : 1 << 30;
    grant.tasks = 1;
    if (const std::string* part = w.find("part"))  // GPU:THOUSANDTHS
      grant.devices.push_back({static_cast<std::uint16_t>(std::stoul(*part)), std::nullopt, 0,
                               GpuThousandths::in<std::uint16_t>(static_cast<std::uint16_t>(
                                   std::stoul(part->substr(part->find(':') + 1))))});
    // GPU:PROFILE:START:THOUSANDTHS, the share of the slice
    if (const std::string* slice = w.find("slice")) {
      std::istringstream words(*slice);
      std::uint16_t n[4] = {};
      for (char colon = 0; std::uint16_t & word : n) words >> word >> colon;
      grant.devices.push_back({n[0], n[1], n[2], GpuThousandths::in<std::uint16_t>{100},
                               DevicePart::in<std::uint16_t>(n[3])});
    }
    if (const std::string* gres = w.find("gres")) {  // NAME:PLACE
      const auto at = gres->find(':');
      grant.gres.push_back(
          {gres->substr(0, at), {static_cast<std::uint16_t>(std::stoul(gres->substr(at + 1)))}});
    }
    start.grants.push_back(grant);
  }
  sched::Plan plan;
  plan.starts.push_back(std::move(start));
  step(PlanReady{std::move(plan)});
}

void World::step_command(const Words& w) {  // step alice 1 tasks=4 | stepdone alice 1 step=0 code=3
  const proto::AttemptKey key = key_of(w.plain.at(2));
  if (w.plain[0] == "stepsignal")
    return ask(w.plain.at(1),
               proto::SignalStep{*parse_job_ref(w.plain.at(2)), StepId(std::stoul(*w.find("step"))),
                                 *parse_signal(*w.find("signal"))});
  if (w.plain[0] == "stepattach")
    return ask(w.plain.at(1),
               proto::StepAttach{{key.job, {}}, StepId(std::stoul(*w.find("step")))});
  if (w.plain[0] == "stepdone") {
    proto::StepDone m;
    m.key = key;
    m.step = StepId(std::stoul(*w.find("step")));
    m.exit.code = w.find("code") ? std::stoi(*w.find("code")) : 0;
    m.timed_out = w.find("late") != nullptr;
    m.started = m.ended = now_;
    return ask(w.plain.at(1), m);
  }
  proto::StepCreate m;
  m.job = key.job;
  m.name = "hello";
  if (w.find("part_of"))
    m.part_of = StepId(static_cast<std::uint32_t>(std::stoul(*w.find("part_of"))));
  if (w.find("tasks")) m.shape.tasks = std::stoul(*w.find("tasks"));
  if (w.find("nodes")) m.shape.nodes = std::stoul(*w.find("nodes"));
  if (w.find("overlap")) m.shape.overlap = true;
  if (w.find("overcommit")) m.shape.overcommit = true;
  if (w.find("cyclic")) m.shape.cyclic = true;
  if (w.find("plane")) m.shape.plane = std::stoul(*w.find("plane"));
  if (w.find("hosts")) m.shape.hosts = split(*w.find("hosts"), ',');
  if (w.find("exclusive")) m.shape.exclusive = true;
  if (w.find("cpus")) m.shape.cpus_per_task = std::stoul(*w.find("cpus"));
  if (w.find("on")) m.shape.nodelist = hosts(*w.find("on"));
  if (w.find("not")) m.shape.excluded = hosts(*w.find("not"));
  if (w.find("each")) m.shape.tasks_per_node = std::stoul(*w.find("each"));
  if (w.find("all_cores")) m.shape.all_cores = true;
  if (w.find("mem")) m.shape.memory_per_node = *parse_memory(*w.find("mem"));
  if (w.find("cpumem")) m.shape.memory_per_cpu = *parse_memory(*w.find("cpumem"));
  if (w.find("gpus")) m.shape.gpus = std::stoul(*w.find("gpus"));
  if (w.find("nodegpus")) m.shape.gpus_per_node = std::stoul(*w.find("nodegpus"));
  if (w.find("taskgpus")) m.shape.gpus_per_task = std::stoul(*w.find("taskgpus"));
  if (w.find("model")) m.shape.gpu_model = *w.find("model");
  if (w.find("time")) m.shape.time_limit = parse_length(*w.find("time"));
  ask(w.plain.at(1), std::move(m));
}

// trigger alice on=fini job=1 program=/x offset=-10s stays=yes | triggers alice | untrigger alice
// id=1
void World::trigger(const std::string& verb, const Words& w) {
  proto::TriggerFilter filter;
  if (w.find("id")) filter.id = TriggerId(std::stoul(*w.find("id")));
  if (w.find("job")) filter.job = JobId(std::stoul(*w.find("job")));
  if (verb == "triggers") return ask(w.plain.at(1), proto::ListTriggers{filter});
  if (verb == "untrigger") return ask(w.plain.at(1), proto::ClearTriggers{filter});
  proto::Trigger t;
  for (const auto& [on, name] : enum_names(proto::TriggerOn{}))
    for (const std::string& said : hosts(*w.find("on")))
      if (said == name) t.on.push_back(on);
  t.job = filter.job;
  if (w.find("nodes")) t.nodes = hosts(*w.find("nodes"));
  if (const std::string* offset = w.find("offset"))
    t.offset = offset->starts_with('-') ? Duration{} - parse_length(offset->substr(1))
                                        : parse_length(*offset);
  t.program = w.find("program") ? *w.find("program") : "/bin/tell";
  t.permanent = w.find("stays") != nullptr;
  ask(w.plain.at(1), proto::SetTrigger{std::move(t)});
}

void World::wait(const Words& w) {
  proto::WaitJobs m;
  for (std::size_t i = 2; i < w.plain.size(); ++i) m.jobs.push_back(*parse_job_ref(w.plain[i]));
  m.until_started = w.find("until") != nullptr;
  m.notices = w.find("notices") != nullptr;
  ask(w.plain.at(1), std::move(m));
}

}  // namespace gantry::core::test
