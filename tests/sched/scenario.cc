#include "tests/sched/scenario.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <sstream>

#include "common/fields.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::sched {
namespace {

template <class T>
T need(Result<T> result) {
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
  return *result;
}

std::int64_t number(const std::string& text) {
  return scenario_number(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;  // a comma within brackets belongs to a host list
  parts.emplace_back();
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == separator && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<std::uint16_t> parse_cpus(const std::string& text) {
  std::vector<std::uint16_t> cpus;
  const auto range = split(text, '-');
  for (std::int64_t c = number(range.front()); c <= number(range.back()); ++c)
    cpus.push_back(static_cast<std::uint16_t>(c));
  return cpus;
}

std::string print_cpus(const std::vector<std::uint16_t>& cpus) {
  const std::vector<std::uint32_t> wide(cpus.begin(), cpus.end());
  return format_index_ranges(compress_indexes(wide));
}

}  // namespace

std::int64_t scenario_number(const std::string& text) {
  return need(parse_integer("value", text, 0, std::int64_t{1} << 40));
}

ScenarioWords::ScenarioWords(const std::string& line) {
  std::istringstream in(line);
  in >> name;
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals != std::string::npos)
      values[word.substr(0, equals)] = word.substr(equals + 1);
    else if (first.empty())
      first = word;
    else
      values[word] = "";
  }
}

ScenarioWords::~ScenarioWords() {
  for (const auto& [key, value] : values) FAIL_CHECK("unknown word ", key, " in ", name);
}

std::optional<std::string> ScenarioWords::take(const std::string& key) {
  const auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  std::string value = it->second;
  values.erase(it);
  return value;
}

std::int64_t ScenarioWords::number_or(const std::string& key, std::int64_t otherwise) {
  const auto value = take(key);
  return value ? number(*value) : otherwise;
}

std::optional<std::int64_t> ScenarioWords::memory(const std::string& key) {
  const auto value = take(key);
  return value ? std::optional(need(parse_memory(*value))) : std::nullopt;
}

bool ScenarioWords::on(const std::string& key, bool otherwise) {
  const auto value = take(key);
  return value ? *value == "on" : otherwise;
}

NodeId Scenario::node_id(const std::string& name) {
  REQUIRE_MESSAGE(nodes_.contains(name), name);
  return nodes_.at(name).node;
}

void Scenario::node(Words& w) {
  NodeChanged n;
  n.available = !w.flag("down");
  n.cpus = parse_cpus(fmt::format("0-{}", w.number_or("cpus", 4) - 1));
  n.memory = w.memory("mem").value_or(std::int64_t{16} << 30);
  n.scratch = w.memory("scratch").value_or(0);
  n.gpus = static_cast<std::uint32_t>(w.number_or("gpus", 0));
  n.gpu_sharing = w.flag("shares");
  n.sockets = static_cast<std::uint32_t>(w.number_or("sockets", 1));
  if (const auto f = w.take("features")) n.features = split(*f, ',');
  if (const auto f = w.take("flavor")) n.flavor = flavor_named(*f);
  for (const std::string& name : need(expand_hostlist(w.first))) {
    n.name = name;
    n.node =
        nodes_.contains(name) ? node_id(name) : NodeId{static_cast<std::uint32_t>(nodes_.size())};
    if (!nodes_.contains(name)) node_names_.push_back(name);
    nodes_[name] = n;
    replica_.apply(n);
  }
}

void Scenario::partition(Words& w) {
  PartitionChanged p;
  p.name = w.first;
  p.partition = partitions_.contains(p.name)
                    ? partitions_.at(p.name).partition
                    : PartitionId{static_cast<std::uint32_t>(partitions_.size())};
  p.up = !w.flag("down");
  p.priority = static_cast<std::uint32_t>(w.number_or("priority", 0));
  for (const std::string& name : need(expand_hostlist(*w.take("nodes"))))
    p.nodes.push_back(node_id(name));
  p.default_memory_per_cpu = w.memory("mem_per_cpu").value_or(0);
  p.exclusive_nodes = w.flag("exclusive");
  if (const auto tenant = w.take("tenant")) {
    tell_tenancy();
    p.quota_node = quota_nodes_.at(*tenant);
  }
  partitions_[p.name] = p;
  replica_.apply(p);
}

void Scenario::place(Words& w) {
  JobPlaced job;
  job.job = JobId{static_cast<std::uint64_t>(number(w.first))};
  const std::int64_t memory = w.memory("mem").value_or(0);
  const auto gpus = static_cast<std::uint32_t>(w.number_or("gpus", 0));
  std::vector<GpuGrant> devices;
  if (const auto share = w.take("part"))
    devices.push_back({static_cast<std::uint16_t>(number(split(*share, ':')[0])), std::nullopt, 0,
                       GpuThousandths{number(split(*share, ':')[1])}.narrow<std::uint16_t>()});
  for (const std::string& part : split(*w.take("on"), ',')) {
    const auto at = split(part, ':');
    for (const std::string& name : need(expand_hostlist(at[0])))
      job.grants.push_back({node_id(name), parse_cpus(at[1]), memory, 0, gpus, 1, devices, {}});
  }
  if (const auto ends = w.take("ends"); ends && *ends != "never")
    job.ends_by = Instant{} + seconds(number(*ends));
  job.exclusive = w.flag("exclusive");
  if (const auto in = w.take("in")) job.partition = partitions_.at(*in).partition;
  if (const auto name = w.take("class")) job.priority_class = class_named(*name);
  job.rank = tenancy_.classes[job.priority_class].value;
  if (const auto user = w.take("user")) job.share = share_named(*user);
  job.started = Instant{} + seconds(w.number_or("started", 0));
  job.leaving = w.flag("leaving");
  placed_[job.job] = job;
  replica_.apply(job);
}

void Scenario::queue(Words& w, bool only_check) {
  JobQueued job;
  job.job = JobId{static_cast<std::uint64_t>(number(w.first.empty() ? "1" : w.first))};
  const std::string in = w.take("in").value_or("batch");
  REQUIRE_MESSAGE(partitions_.contains(in), in);
  job.key.partition = partitions_.at(in).partition;
  JobShape& s = job.key.shape;
  if (const auto nodes = w.take("N")) {
    const auto range = split(*nodes, '-');
    s.min_nodes = static_cast<std::uint32_t>(number(range.front()));
    s.max_nodes = static_cast<std::uint32_t>(number(range.back()));
  }
  s.tasks = static_cast<std::uint32_t>(w.number_or("n", s.min_nodes));
  s.cpus_per_task = static_cast<std::uint32_t>(w.number_or("c", 1));
  if (const auto n = w.take("per_node")) s.tasks_per_node = static_cast<std::uint32_t>(number(*n));
  s.memory_per_node = w.memory("mem");
  s.memory_per_cpu = w.memory("mem_per_cpu");
  s.scratch_per_node = w.memory("scratch").value_or(0);
  s.gpus_per_node = static_cast<std::uint32_t>(w.number_or("gpus", 0));
  s.gpu_share = static_cast<std::uint32_t>(w.number_or("part", 0));
  s.constraint = w.take("C").value_or("");
  if (const auto list = w.take("w")) s.required_nodes = need(expand_hostlist(*list));
  if (const auto list = w.take("x")) s.excluded_nodes = need(expand_hostlist(*list));
  s.exclusive = w.flag("exclusive");
  const std::string limit = w.take("limit").value_or("60");
  if (limit != "never") job.key.time_limit = seconds(number(limit));
  job.priority = w.number_or("prio", 0);
  job.queued_since = Instant{} + seconds(w.number_or("since", now_.us / 1'000'000));
  job.startable = static_cast<std::uint32_t>(w.number_or("startable", 1));
  if (const auto name = w.take("class")) {
    job.key.priority_class = class_named(*name);
    job.rank = tenancy_.classes[job.key.priority_class].value;
  }
  job.rank = static_cast<std::int32_t>(w.number_or("rank", job.rank));
  if (const auto user = w.take("user")) job.share = share_named(*user);
  job.key.reservation = w.take("reservation").value_or("");
  if (only_check) {
    std::vector<const NodeChanged*> nodes;
    for (const NodeId n : partitions_.at(in).nodes)
      nodes.push_back(&nodes_.at(node_names_[n.value()]));
    const auto ok = check_fits(s, partitions_.at(in), nodes);
    printed_ +=
        ok ? "fits\n" : fmt::format("{}: {}\n", name_of(ok.error().code), ok.error().message);
    return;
  }
  waiting_[job.job] = job;
  replica_.apply(job);
}

void Scenario::policy(Words& w) {
  policy_.reservations =
      static_cast<std::uint32_t>(w.number_or("reservations", policy_.reservations));
  policy_.depth = static_cast<std::uint32_t>(w.number_or("depth", policy_.depth));
  policy_.estimates = static_cast<std::uint32_t>(w.number_or("estimates", policy_.estimates));
  policy_.starts = static_cast<std::uint32_t>(w.number_or("starts", policy_.starts));
  policy_.ahead = static_cast<std::uint32_t>(w.number_or("ahead", policy_.ahead));
  policy_.replans = static_cast<std::uint32_t>(w.number_or("replans", policy_.replans));
  policy_.quota = w.on("quota", policy_.quota);
  policy_.fair_share = w.on("fair_share", policy_.fair_share);
  policy_.preemption = w.on("preemption", policy_.preemption);
  policy_.balance = minutes(w.number_or("balance", policy_.balance.us / 60'000'000));
  policy_.keep_reservations = w.on("promises", policy_.keep_reservations);
  policy_.attempts = static_cast<std::uint64_t>(
      w.number_or("attempts", static_cast<std::int64_t>(policy_.attempts)));
}

void Scenario::command(const std::string& line) {
  Words w(line.substr(0, line.find('#')));
  if (w.name.empty()) return;
  if (w.name == "node") return node(w);
  if (w.name == "partition") return partition(w);
  if (w.name == "run") return place(w);
  if (w.name == "queue") return queue(w, false);
  if (w.name == "fits") return queue(w, true);
  if (w.name == "policy") return policy(w);
  if (tenancy_command(w)) return;
  if (w.name == "now") {
    now_ = Instant{} + seconds(number(w.first));
    return;
  }
  const JobId job{static_cast<std::uint64_t>(number(w.first))};
  if (w.name == "unqueue") {
    waiting_.erase(job);
    replica_.apply(JobUnqueued{job});
  } else if (w.name == "limit") {
    replica_.apply(JobLimitChanged{job, Instant{} + seconds(number(*w.take("ends")))});
  } else if (w.name == "end") {
    const auto only = w.take("node");
    for (const NodeGrant& g : placed_.at(job).grants)
      if (!only || node_id(*only) == g.node) replica_.apply(NodeReleased{job, g.node});
  } else {
    FAIL("unknown command ", w.name);
  }
}

std::string Scenario::names(const std::vector<NodeId>& nodes) {
  std::vector<std::string> list;
  for (const NodeId n : nodes) list.push_back(node_names_[n.value()]);
  return compress_hostlist(list);
}

std::string Scenario::print(const Verdict& v) {
  std::string text(enum_name(v.reason));
  if (v.reason == Reason::priority) text += fmt::format(", {} in front", v.a);
  if (v.reason == Reason::tenant_quota || v.reason == Reason::cohort_quota ||
      v.reason == Reason::tenant_jobs)
    text += fmt::format(", {} of {}", v.a, v.b);
  if (v.reason == Reason::reclaiming)
    text += fmt::format(", {} leave until {}", v.a, Duration{v.b}.seconds());
  if (v.reason == Reason::maintenance) text += fmt::format(" from {}", Duration{v.a}.seconds());
  if (v.reason == Reason::resources) text += fmt::format(", {} of {} nodes", v.a, v.b);
  if (!v.subject.empty()) text += " " + v.subject;
  return text;
}

std::string Scenario::print(const Plan& plan) {
  std::string text;
  for (const Start& s : plan.starts) {
    text += fmt::format("start {}:", s.job.value());
    for (const NodeGrant& g : s.grants) {
      text += fmt::format(" {} cpus {} tasks {} mem {}", node_names_[g.node.value()],
                          print_cpus(g.cpus), g.tasks, format_memory(g.memory));
      if (g.scratch > 0) text += fmt::format(" scratch {}", format_memory(g.scratch));
      if (g.gpus > 0) text += fmt::format(" gpus {}", g.gpus);
      for (const GpuGrant& d : g.devices)
        if (is_part(d)) text += fmt::format(" gpu {} by {}", d.gpu, d.thousandths.value());
      text += s.grants.back() == g ? "" : ";";
    }
    text += "\n";
  }
  for (const Preempt& p : plan.preemptions)
    text += fmt::format("preempt {} for {}{}, lost {}\n", p.victim.value(), p.for_job.value(),
                        p.why == PreemptWhy::reclaim    ? ", reclaimed"
                        : p.why == PreemptWhy::by_share ? ", by share"
                                                        : "",
                        Duration{p.lost_work}.seconds());
  for (const Expected& e : plan.expected)
    text += fmt::format("expect {} at {}{}\n", e.job.value(), (e.start - Instant{}).seconds(),
                        e.nodes.empty() ? "" : " on " + names(e.nodes));
  for (const ClassVerdict& v : plan.verdicts) {
    text += fmt::format("{} waits: {}", v.head.value(), print(v.of_head));
    if (v.of_rest.reason != Reason::none)
      text += fmt::format("; those like it: {}", print(v.of_rest));
    text += "\n";
  }
  if (plan.stats.budget_spent) text += "budget spent\n";
  return text;
}

std::string Scenario::run(const std::vector<std::string>& commands) {
  printed_.clear();
  for (const std::string& line : commands) command(line);
  tell_tenancy();
  const Plan plan = schedule(replica_, now_, policy_);
  printed_ += print(plan);
  for (const Start& s : plan.starts) {
    JobQueued& job = waiting_.at(s.job);
    const JobId id = job.startable > 1 ? JobId{s.job.value() * 1000 + job.startable} : s.job;
    JobPlaced fact{id, s.grants, std::nullopt, job.key.shape.exclusive};
    fact.partition = job.key.partition;
    fact.priority_class = job.key.priority_class;
    fact.rank = tenancy_.classes[job.key.priority_class].value;
    fact.share = job.share;
    fact.started = now_;
    if (job.key.time_limit) fact.ends_by = now_ + *job.key.time_limit;
    replica_.apply(fact);
    placed_[fact.job] = fact;
    if (--job.startable > 0) {
      replica_.apply(job);
    } else {
      waiting_.erase(s.job);
      replica_.apply(JobUnqueued{s.job});
    }
  }
  CHECK(replica_.audit() == "");
  return printed_;
}

std::string run_scenarios(const std::string& text) {
  Scenario scenario;
  std::string result;
  std::istringstream in(text);
  std::vector<std::string> commands;
  for (std::string line; std::getline(in, line);) {
    result += line + "\n";
    if (line != "----") {
      commands.push_back(line);
      continue;
    }
    result += scenario.run(commands) + "\n";
    commands.clear();
    while (std::getline(in, line) && !line.empty()) {
    }
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

}  // namespace gantry::sched
