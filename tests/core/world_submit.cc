// The submits of scenarios; see world.h.
#include <fmt/core.h>

#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"
#include "common/text/text.h"
#include "world.h"

namespace gantry::core::test {

namespace {

void dependencies(JobSpec& spec, const std::string& text) {
  std::string item;
  for (const char c : text + ",") {
    if (c != ',' && c != '?') {
      item += c;
      continue;
    }
    if (c == '?') spec.any_dependency = true;
    Dependency d;
    const auto colon = item.find(':');
    const std::string kind = item.substr(0, colon);
    for (const auto& [value, name] : enum_names(d.kind))
      if (name == kind) d.kind = value;
    if (colon != std::string::npos) {
      std::string rest = item.substr(colon + 1);
      if (const auto plus = rest.find('+'); plus != std::string::npos) {
        d.delay = minutes(std::stoll(rest.substr(plus + 1)));
        rest.resize(plus);
      }
      if (const auto under = rest.find('_'); under != std::string::npos)
        d.array_task = std::stoul(rest.substr(under + 1));
      d.job = JobId(std::stoull(rest));
    }
    spec.dependencies.push_back(d);
    item.clear();
  }
}

void files_of(JobSpec& spec, const Words& w) {
  if (const std::string* dir = w.find("work_dir")) spec.work_dir = *dir;
  if (const std::string* file = w.find("out")) spec.std_out = *file;
  if (const std::string* image = w.find("image")) spec.container.image = *image;
  World::add_labels(w, spec);
  World::add_datasets(w, spec);
  if (const std::string* sandbox = w.find("sandbox"))
    for (const auto& [level, name] : enum_names(Sandbox{}))
      if (name == *sandbox) spec.sandbox = level;
}

void counts_of(JobSpec& spec, const Words& w) {
  if (const std::string* rate = w.find("io"))
    spec.io_rate = static_cast<std::uint64_t>(parse_rate(*rate).value_or(0));
  if (const std::string* rate = w.find("net"))
    spec.network_rate = static_cast<std::uint64_t>(parse_rate(*rate).value_or(0));
  const auto count = [](const std::string& text) {
    return static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
  };
  if (const std::string* secrets = w.find("secret"))  // NAME[@VERSION][:FILE],...
    for (const std::string& one : listed(*secrets)) {
      const std::string name = one.substr(0, one.find(':'));
      SecretUse& use = spec.secrets.emplace_back(SecretUse{name.substr(0, name.find('@')), 0, {}});
      if (name.find('@') != std::string::npos)
        use.version = count("@:" + name.substr(name.find('@') + 1));
      if (name != one) use.file = one.substr(name.size() + 1);
    }
  if (const std::string* audiences = w.find("identity"))
    spec.identity_audiences = listed(*audiences);
  if (const std::string* gres = w.find("gres"))  // NAME:N
    spec.shape.gres.push_back({gres->substr(0, gres->find(':')), count(*gres)});
  if (const std::string* licenses = w.find("licenses"))  // NAME:N,...
    for (const std::string& one : listed(*licenses))
      spec.shape.licenses.push_back({one.substr(0, one.find(':')), count(one)});
}

// The words of `older`, separated by ';', are sent as a client of an older release would send them.
void ask_for_mail(JobSpec& spec, const Words& w) {
  if (const std::string* events = w.find("mail")) spec.mail.events = *parse_mail_events(*events);
  if (const std::string* to = w.find("mail_to")) spec.mail.to = split(*to, ',');
  const std::string* older = w.find("older");
  if (older == nullptr) return;
  spec.older_given = split(*older, ';');
  spec.from_older_form();
}

void exactly(std::uint32_t nodes, JobShape& shape) {
  shape.min_nodes = shape.max_nodes = nodes;
}

void ask_for_network(JobSpec& spec, const std::string& mode) {
  for (const auto& [value, name] : enum_names(NetworkMode{}))
    if (name == mode) spec.network = value;
}

}  // namespace

proto::SubmitJob World::submit_message(const std::string& user, const Words& w) const {
  proto::SubmitJob m;
  JobSpec& s = m.spec;
  s.work_dir = "/home/" + user;
  m.script = "#!/bin/sh\ntrue\n";
  const auto text = [&](const char* key, auto&& use) {
    if (const std::string* value = w.find(key)) use(*value);
  };
  text("name", [&](const std::string& v) { s.name = v; });
  text("nodes", [&](const std::string& v) { exactly(std::stoul(v), s.shape); });
  text("most_nodes", [&](const std::string& v) { s.shape.max_nodes = std::stoul(v); });
  text("tasks", [&](const std::string& v) { s.shape.tasks = std::stoul(v); });
  text("cpus", [&](const std::string& v) { s.shape.cpus_per_task = std::stoul(v); });
  text("tasks_per_node", [&](const std::string& v) { s.shape.tasks_per_node = std::stoul(v); });
  text("overcommit", [&](const std::string&) { s.shape.overcommit = true; });
  text("node_cpus", [&](const std::string& v) { s.shape.min_cpus_per_node = std::stoul(v); });
  text("layout", [&](const std::string& v) {
    for (const auto& [value, name] : enum_names(NodeLayout{}))
      if (name == v) s.shape.node_layout = value;
  });
  text("least_time", [&](const std::string& v) { s.time_min = parse_length(v); });
  text("mem", [&](const std::string& v) { s.shape.memory_per_node = *parse_memory(v); });
  text("time", [&](const std::string& v) {
    if (v == "unlimited")
      s.unlimited_time = true;
    else
      s.time_limit = parse_length(v);
  });
  text("partition", [&](const std::string& v) { s.partition = v; });
  text("account", [&](const std::string& v) { s.account = v; });
  text("reservation", [&](const std::string& v) { s.reservation = v; });
  text("class", [&](const std::string& v) { s.priority_class = v; });
  text("own_class", [&](const std::string& v) { s.tenant_class = v; });
  text("gpus", [&](const std::string& v) { s.shape.gpus_per_node = std::stoul(v); });
  text("part", [&](const std::string& v) { s.shape.gpu_share = std::stoul(v); });
  text("slice", [&](const std::string& v) { s.shape.gpu_slice = v; });
  text("shards", [&](const std::string& v) { s.shape.gpu_shards = std::stoul(v); });
  text("constraint", [&](const std::string& v) { s.shape.constraint = v; });
  text("exclusive", [&](const std::string&) { s.shape.exclusive = true; });
  text("sharing", [&](const std::string& v) {
    s.shape.sharing = v == "user" ? NodeSharing::same_user : NodeSharing::same_tenant;
  });
  text("on", [&](const std::string& v) { s.shape.required_nodes = hosts(v); });
  text("not_on", [&](const std::string& v) { s.shape.excluded_nodes = hosts(v); });
  text("network", [&](const std::string& mode) { ask_for_network(s, mode); });
  text("array", [&](const std::string& v) { s.array = *parse_index_ranges(v); });
  text("begin", [&](const std::string& v) { s.begin = time_of(v); });
  text("deadline", [&](const std::string& v) { s.deadline = time_of(v); });
  text("hold", [&](const std::string&) { s.hold = true; });
  text("nice", [&](const std::string& v) { s.nice = std::stoi(v); });
  text("priority", [&](const std::string& v) { s.priority = std::stoul(v); });
  text("no_kill", [&](const std::string& v) { s.no_kill = v == "yes"; });
  text("requeue", [&](const std::string& v) { s.requeue = v == "yes"; });
  text("signal", [&](const std::string& v) { s.warn_signal = *parse_warn_signal(v); });
  text("dep", [&](const std::string& v) { dependencies(s, v); });
  text("cancel_invalid",
       [&](const std::string& v) { s.cancel_on_invalid_dependency = v == "yes"; });
  text("request", [&](const std::string& v) { m.request_id = v; });
  text("script", [&](const std::string& v) { m.script = v; });
  text("script_bytes", [&](const std::string& v) { m.script.resize(std::stoul(v), '#'); });
  files_of(s, w);
  counts_of(s, w);
  ask_for_mail(s, w);
  text("test_only", [&](const std::string&) { m.test_only = true; });
  text("kind", [&](const std::string&) {
    s.kind = JobKind::allocation;
    m.script.clear();
  });
  return m;
}

// together alice name=a nodes=1 : name=b nodes=2: submits a heterogeneous job.
void World::submit_together(const std::string& user, std::string_view text) {
  proto::SubmitTogether m;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(" : ", at), text.size());
    m.parts.push_back(submit_message(user, split_words(text.substr(at, end - at))));
    at = end + 3;
  }
  for (std::size_t i = 1; i < m.parts.size(); ++i) {
    m.parts[i].spec.kind = JobKind::allocation;
    m.parts[i].script.clear();
  }
  ask(user, std::move(m));
}

}  // namespace gantry::core::test
