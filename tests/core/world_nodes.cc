// The nodes of a scenario: their messages, and the passing of time; see world.h.
#include <fmt/core.h>

#include <sstream>

#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/text/text.h"
#include "config/gres.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "tests/sched/mig/mig_world.h"
#include "world.h"

namespace gantry::core::test {

void World::register_node(FakeNode& node) {
  proto::NodeRegister m;
  m.node = node.name;
  m.version = "0.1.0";
  m.boot_id = node.boot;
  m.address = node.name + ":6871";
  for (std::uint32_t cpu = 0; cpu < node.cpus; ++cpu)
    m.cpus.push_back(static_cast<std::uint16_t>(cpu));
  m.memory = node.memory;
  m.highest_job = node.highest_job;
  for (const auto& [key, phase] : node.attempts) m.attempts.push_back({key, phase});
  m.gpus = node.gpus;
  m.layers_off = node.layers_off;
  m.sandboxes = node.sandboxes;
  for (const auto& [ability, name] : enum_names(NodeAbility{}))
    if (!node.older) m.abilities |= bit_of(ability);
  for (const std::string& text : node.gres) {
    const auto one = parse_declared_gres(text);
    m.gres.push_back({one->name, one->count});
  }
  node.beats = true;
  step(FromNode{node.name, std::move(m)});
  if (node.session != 0)
    step(FromNode{node.name, proto::Heartbeat{node.session, 0.5, 1 << 30, {}}});
}

// n1 gpus 8 h100 | n1 gpus broken=3 cause="gpu-xid-79" [domain=node] [untold=yes] |
// n1 gpus repaired=3 | n1 gpus none="..."
void World::gpu_report(FakeNode& node, const Words& w) {
  GpuInventory& found = node.gpus;
  if (w.plain.size() > 2) {
    found = {};
    found.driver = "550.54";
    if (w.find("mig")) found.geometries = {sched::h100_geometry()};
    for (std::uint32_t i = 0; i < std::stoul(w.plain.at(2)); ++i) {
      GpuDevice gpu;
      gpu.index = gpu.minor = i;
      gpu.uuid = fmt::format("GPU-{}", i);
      gpu.model = w.plain.size() > 3 ? w.plain.at(3) : "h100";
      gpu.numa = i < 4 ? 0 : 1;
      gpu.mig = w.find("mig") != nullptr;
      found.gpus.push_back(std::move(gpu));
    }
  }
  if (const std::string* none = w.find("none")) {
    found = {};
    found.why_none = *none;
  }
  if (w.find("broken"))
    found.gpus.at(std::stoul(*w.find("broken"))).faults = {
        {w.find("domain") ? FaultDomain::node : FaultDomain::gpu, *w.find("cause"), 0, now_}};
  if (w.find("repaired")) found.gpus.at(std::stoul(*w.find("repaired"))).faults.clear();
  // the node has the fault and does not report it, because its daemon is down or has not seen it
  // yet
  if (w.find("untold")) return;
  step(FromNode{node.name, proto::GpuReport{node.session, found}});
}

void World::exit_report(FakeNode& node, const Words& w) {
  proto::ExitReport m;
  m.key = key_of(w.plain.at(2));
  if (w.find("attempt")) m.key.attempt = Attempt(std::stoul(*w.find("attempt")));
  if (w.find("code")) m.exit.code = std::stoi(*w.find("code"));
  if (w.find("signal")) m.exit.signal = std::stoi(*w.find("signal"));
  if (w.find("cause"))
    for (const auto& [value, name] : enum_names(m.cause))
      if (name == *w.find("cause")) m.cause = value;
  if (w.find("message")) m.message = *w.find("message");
  if (w.find("cpu")) m.usage.cpu_user_us = parse_length(*w.find("cpu")).us;
  if (const std::string* busy = w.find("busy")) {  // busy=h100:700,h100 slice:50 in thousandths
    std::size_t at = 0;
    while (at < busy->size()) {
      const std::size_t end = std::min(busy->find(',', at), busy->size());
      const std::size_t colon = busy->rfind(':', end);
      GpuUsage& gpu = m.usage.gpus.emplace_back();
      gpu.name = busy->substr(at, colon - at);
      gpu.busy_permille = std::stoul(busy->substr(colon + 1, end - colon - 1));
      gpu.busy_samples = 10;
      at = end + 1;
    }
  }
  if (w.find("peak")) m.usage.memory_peak_bytes = *parse_memory(*w.find("peak"));
  // With ago=LENGTH [awake=LENGTH] the job ended this long ago; `awake` is how long it had run by
  // the clock of its machine.
  m.ended = w.find("ago") ? now_ - parse_length(*w.find("ago")) : now_;
  if (w.find("awake")) {
    m.ran = parse_length(*w.find("awake"));
    m.started = m.ended - *m.ran;
  }
  if (w.find("ran")) m.started = now_ - parse_length(*w.find("ran"));
  const auto at = node.attempts.find(m.key);
  if (at != node.attempts.end()) at->second = proto::AttemptPhase::exited;
  step(FromNode{node.name, std::move(m)});
}

void World::idle_gpus(const std::string& text, proto::Heartbeat& beat) const {
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    std::istringstream parts(one);
    std::string job, gpu, length, process;
    std::getline(parts, job, ':');
    std::getline(parts, gpu, ':');
    std::getline(parts, length, ':');
    std::getline(parts, process, ':');
    proto::GpuActivity& a = beat.gpus.emplace_back();
    a.key = key_of(job);
    a.gpu = static_cast<std::uint32_t>(std::stoul(gpu));
    a.name = "h100";
    a.idle = parse_length(length);
    a.has_process = !process.empty();
  }
}

// held_up=VICTIM:CAUSE[:CULPRIT]: a finding on vda, for 20 seconds; held=JOB: the job is throttled
// there.
void World::sharing(const Words& w, proto::Heartbeat& beat) const {
  if (const std::string* text = w.find("held_up")) {
    std::istringstream parts(*text);
    std::string victim, cause, culprit;
    std::getline(parts, victim, ':');
    std::getline(parts, cause, ':');
    std::getline(parts, culprit, ':');
    proto::SharingFinding& f = beat.sharing.findings.emplace_back();
    f.number = 1;
    f.resource = proto::SharedResource::disk;
    f.device = "vda";
    f.victim = key_of(victim);
    f.since = begin_;
    f.last = now_;
    for (const auto& [value, name] : enum_names(f.cause))
      if (name == cause) f.cause = value;
    if (!culprit.empty()) f.by.push_back({key_of(culprit), 90, 95});
    f.confidence = 80;
    f.level = 100;
    f.held_up = 70;
    f.own = 60;
    if (w.find("over")) f.ended = now_;
  }
  if (const std::string* held = w.find("held"))
    beat.sharing.holds.push_back({key_of(*held), proto::SharedResource::disk, "vda", 5'000'000,
                                  begin_, begin_ + seconds(60), 1, std::nullopt});
}

void World::neighbours(const Words& w) {
  core_->step(now_, ClientRequest{ConnectionId(1), next_request_++, who(w.plain.at(1)),
                                  proto::ListNeighbours{*parse_job_ref(w.plain.at(2))}});
  Turn turn = core_->take_turn();
  const auto* reply = turn.replies.at(0).message.get_if<proto::NeighbourList>();
  if (reply == nullptr) return print(turn.replies.at(0));
  for (const proto::NeighbourRow& row : reply->neighbours)
    line(fmt::format("on {}: {}", row.node,
                     row.job.empty() ? "another tenant's"
                                     : fmt::format("{} of {} {}", row.job, row.user, row.tenant)));
  for (const proto::NeighbourEvent& e : reply->events)
    line(fmt::format("{}{}: {}", e.node, e.ended ? " (over)" : "", e.text));
  for (const proto::ApartRow& row : reply->apart)
    line("kept apart from " +
         (row.user.empty() ? "another tenant's" : fmt::format("{} of {}", row.name, row.user)));
}

// LEVEL[:WHY_NOT],...
static std::vector<SandboxFact> sandboxes_of(const std::string& text) {
  std::vector<SandboxFact> out;
  for (const std::string& one : listed(text))
    for (const auto& [level, name] : enum_names(Sandbox{}))
      if (one.substr(0, one.find(':')) == name)
        out.push_back(
            {level, one.find(':') == std::string::npos ? "" : one.substr(name.size() + 1)});
  return out;
}

void World::node_says(FakeNode& node, const Words& w) {  // n1 started 1
  const std::string& what = w.plain.at(1);
  if (what == "exit") return exit_report(node, w);
  if (what == "gpus") return gpu_report(node, w);
  if (what == "register") {
    if (w.find("boot")) {
      node.boot = *w.find("boot");
      node.attempts.clear();
    }
    if (w.find("forgot")) node.attempts.clear();
    if (w.find("off")) node.layers_off = {*w.find("off")};
    if (w.find("sandboxes")) node.sandboxes = sandboxes_of(*w.find("sandboxes"));
    if (w.find("release")) node.older = *w.find("release") == "older";
    if (w.find("cpus")) node.cpus = std::stoul(*w.find("cpus"));
    if (w.find("mem")) node.memory = *parse_memory(*w.find("mem"));
    if (w.find("highest")) node.highest_job = JobId(std::stoull(*w.find("highest")));
    return register_node(node);
  }
  if (what == "silent") {
    node.beats = false;
    return;
  }
  if (what == "goodbye") {
    node.beats = false;
    return step(FromNode{node.name, proto::Goodbye{node.session}});
  }
  if (what == "file")  // the node answers the last request for output
    return step(
        FromNode{node.name, proto::FetchLogReply{ticket_, w.find("data") ? *w.find("data") : "",
                                                 w.find("error") ? *w.find("error") : ""}});
  // beat [touched=1 ago=30s] [asleep=JOB:LENGTH] [idle=JOB:GPU:LENGTH[:process],...] [trouble=TEXT]
  // [held_up=JOB:CAUSE[:JOB]] [held=JOB]
  if (what == "beat") {
    proto::Heartbeat beat{node.session, 0.5, 1 << 30, now_};
    if (const std::string* asleep = w.find("asleep"))  // JOB:LENGTH
      beat.asleep.push_back({key_of(asleep->substr(0, asleep->find(':'))),
                             parse_length(asleep->substr(asleep->find(':') + 1))});
    if (const std::string* trouble = w.find("trouble")) beat.trouble = *trouble;
    if (const std::string* idle = w.find("idle")) idle_gpus(*idle, beat);
    sharing(w, beat);
    if (w.find("touched"))
      beat.checkpoints.push_back({key_of(*w.find("touched")), now_ - parse_length(*w.find("ago"))});
    return step(FromNode{node.name, std::move(beat)});
  }
  const proto::AttemptKey key = key_of(w.plain.at(2));
  const auto at = node.attempts.find(key);
  if (what == "ready") {
    if (at != node.attempts.end()) at->second = proto::AttemptPhase::held;
    return step(FromNode{node.name, proto::LaunchReady{key}});
  }
  if (what == "froze" || what == "thawed")
    return step(FromNode{node.name, proto::Frozen{key, what == "froze"}});
  if (what == "started") {
    if (at != node.attempts.end()) at->second = proto::AttemptPhase::running;
    const Duration ago = w.find("ago") ? parse_length(*w.find("ago")) : Duration{};
    return step(FromNode{node.name, proto::Started{key, now_ - ago}});
  }
  line("nodes do not say " + what);
}

// Advances the time. The core is called at each time that it asked for, and every node that is not
// silent sends heartbeats.
void World::advance(Duration length) {
  const Instant end = now_ + length;
  Instant beat = now_ + config_.controller.heartbeat;
  while (now_ < end) {
    Instant next = std::min(end, beat);
    if (wake_ && *wake_ < next) next = std::max(now_, *wake_);
    now_ = next;
    if (wake_ && *wake_ <= now_) step(Tick{});
    if (now_ < beat) continue;
    beat = now_ + config_.controller.heartbeat;
    for (auto& [name, node] : nodes_)
      if (node.beats) step(FromNode{name, proto::Heartbeat{node.session, 0.5, 1 << 30, {}}});
  }
}

}  // namespace gantry::core::test
