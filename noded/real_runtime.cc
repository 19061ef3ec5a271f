#include "noded/real_runtime.h"

#include <fmt/core.h>

#include <csignal>

#include "common/overloaded.h"
#include "noded/core/job_environment.h"
#include "noded/machine/discover.h"
#include "noded/runtime/secret_files.h"

namespace gantry::node {

namespace {

constexpr const char* kRunInContainer = "/run/gantry";
constexpr std::string_view kAwsAudience = "sts.amazonaws.com";

Exit exit_of(const runtime::ExitRecord& record) {
  Exit exit;
  exit.cause = record.cause;
  exit.status = record.exit;
  exit.message = record.message;
  exit.usage = record.usage;
  exit.started = record.started;
  exit.ended = record.ended;
  exit.ran = record.ran;
  return exit;
}

Recovered::Stage stage_of(runtime::RecoveredAttempt::Stage stage) {
  switch (stage) {
    case runtime::RecoveredAttempt::Stage::never_started: return Recovered::Stage::never_started;
    case runtime::RecoveredAttempt::Stage::preparing: return Recovered::Stage::preparing;
    case runtime::RecoveredAttempt::Stage::held: return Recovered::Stage::held;
    case runtime::RecoveredAttempt::Stage::running: return Recovered::Stage::running;
    case runtime::RecoveredAttempt::Stage::ended: return Recovered::Stage::ended;
  }
  return Recovered::Stage::ended;
}

// Names of the job's nodes, with the addresses at which the job reaches them. A job with only
// loopback reaches nothing but itself.
std::map<std::string, std::string> hosts_of(const proto::Launch& launch,
                                            const RealRuntimeOptions& options) {
  std::map<std::string, std::string> out;
  if (launch.network && options.networks != nullptr) {
    const JobNetworks& networks = *options.networks;
    for (const proto::NetworkPart& peer : launch.network->peers)
      if (peer.job != JobId{})  // otherwise the file has a node without a part of the job
        out.try_emplace(peer.node, networks.address_of(peer));
    out[options.node] = networks.address_of(launch.network->own);
    return out;
  }
  if (launch.spec.network != NetworkMode::host) return {{options.node, "127.0.0.1"}};
  const auto add = [&](const std::vector<NodePlacement>& placement) {
    for (const NodePlacement& place : placement)
      if (const auto at = options.addresses.find(place.node); at != options.addresses.end())
        out.insert(*at);
  };
  add(launch.placement);
  for (const proto::HetGroup& group : launch.het) add(group.placement);
  return out;
}

// Sets the variables for the job's secrets; programs for AWS look for their own variable.
void add_secret_places(const proto::Launch& launch, std::map<std::string, std::string>& env) {
  if (launch.secrets.empty() && launch.identity.empty()) return;
  const std::string dir = runtime::kSecretsInside;
  env["GANTRY_SECRETS_DIR"] = dir;
  for (const proto::IdentityToken& one : launch.identity) {
    env.try_emplace("GANTRY_IDENTITY_TOKEN_FILE", dir + "/" + one.file);
    if (one.audience == kAwsAudience) env["AWS_WEB_IDENTITY_TOKEN_FILE"] = dir + "/" + one.file;
  }
}

}  // namespace

namespace {

// GANTRY_DATASET_TRANSACTIONS_2026 for the dataset transactions-2026.
std::string variable_of_dataset(std::string_view name) {
  std::string out = "GANTRY_DATASET_";
  for (const char c : name)
    out += c >= 'a' && c <= 'z'                               ? static_cast<char>(c - 'a' + 'A')
           : (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c
                                                              : '_';
  return out;
}

// The address of the doors of replicas: the node's, if it is known as a number.
std::string door_address(const RealRuntimeOptions& options) {
  const auto at = options.addresses.find(options.node);
  return at != options.addresses.end() ? at->second : options.config.listen_host;
}

}  // namespace

runtime::LaunchRequest launch_request(const proto::Launch& launch,
                                      const RealRuntimeOptions& options,
                                      const std::string& job_socket) {
  const JobSpec& spec = launch.spec;
  const bool batch = launch.runs_batch && spec.kind == JobKind::batch;
  runtime::LaunchRequest r;
  r.key = launch.key;
  r.kind = batch ? runtime::LaunchKind::batch : runtime::LaunchKind::holder;
  r.hold = launch.hold;
  r.owner = launch.owner;
  r.name = spec.name;
  r.tenant = launch.tenant;
  r.sharing.tenant = launch.tenant.empty() ? launch.partition : launch.tenant;
  r.array_job = launch.array_job;
  r.array_task = launch.array_task;
  r.node_index = launch.node_index;
  r.work_dir = spec.work_dir;
  r.std_in = spec.std_in;
  r.std_out = spec.std_out;
  r.std_err = spec.std_err;
  r.open_mode = spec.open_mode;
  r.limits = spec.limits;
  r.io_rate = spec.io_rate;
  r.sandbox = spec.sandbox.value_or(Sandbox::standard);
  r.gpu_names = spec.gpu_names;
  r.container = spec.container;
  r.network = spec.network.value_or(NetworkMode::loopback);
  r.parts = launch.network;
  r.storage = launch.storage;
  r.objects = launch.objects;
  if (batch) {
    r.stage_in = spec.stage_in;
    r.stage_out = spec.stage_out;
  }
  r.hosts = hosts_of(launch, options);
  if (batch) {
    r.script = launch.script;
    r.argv = spec.script_args;
  }
  const EnvironmentFacts facts{options.cluster, options.node, job_socket};
  r.env = job_environment(launch, facts);
  r.stated = job_variables(launch, facts);
  add_secret_places(launch, r.env);
  for (const StorageMount& m : launch.storage)
    r.env.try_emplace(m.dataset.empty() ? "GANTRY_TENANT_DIR" : variable_of_dataset(m.dataset),
                      m.path);
  r.checkpoint_file = checkpoint_file(launch, options.node);
  if (launch.node_index < launch.placement.size()) {
    const NodePlacement& here = launch.placement[launch.node_index];
    r.cpus = runtime::cpus_here(here.cpus, options.shared_cpus);
    r.memory = here.memory;
    r.scratch = here.scratch;
  }
  if (launch.door && batch)
    r.door = runtime::LaunchDoor{door_address(options), launch.door->port, launch.door->inside,
                                 launch.door->password};
  r.pids_max = options.config.pids_max;
  r.tmp_bytes = options.config.tmp_bytes;
  r.prolog = options.config.prolog;
  r.epilog = options.config.epilog;
  return r;
}

RealRuntime::RealRuntime(std::unique_ptr<runtime::Runtime> runtime, RealRuntimeOptions options,
                         JobSockets& sockets, loop::Loop& loop, const Logger& log)
    : runtime_(std::move(runtime)),
      options_(std::move(options)),
      sockets_(sockets),
      checkpoints_(loop),
      secrets_(
          loop, options_.config.state_dir,
          [this](const AttemptKey& key) { options_.on_event(TokensDue{key}); }, log),
      log_(log) {}

std::vector<Recovered> RealRuntime::recover() {
  std::vector<Recovered> out;
  JobNetworks::Running networks;
  for (auto& found : runtime_->recover()) {
    Recovered r;
    r.key = found.key;
    r.stage = stage_of(found.stage);
    r.started = found.started;
    r.frozen = found.frozen;
    r.exit = exit_of(found.record);
    const bool lives =
        r.stage != Recovered::Stage::ended && r.stage != Recovered::Stage::never_started;
    if (lives) open_socket(found.key, found.request.owner.uid);
    if (r.stage != Recovered::Stage::ended && options_.gpus != nullptr)
      options_.gpus->recovered(found.key, found.request);
    if (r.stage != Recovered::Stage::ended) watch_checkpoints(found.request);
    if (r.stage != Recovered::Stage::ended) secrets_.adopt(found.request);
    if (r.stage != Recovered::Stage::ended && found.request.parts)
      networks.emplace_back(found.key, *found.request.parts);
    log_.info("found an attempt of an earlier daemon",
              {{"job", r.key.job},
               {"attempt", r.key.attempt},
               {"state", lives                                ? "alive"
                         : r.stage == Recovered::Stage::ended ? "ended"
                                                              : "not started"}});
    out.push_back(std::move(r));
  }
  if (options_.networks != nullptr) options_.networks->adopt(std::move(networks));
  secrets_.sweep();
  return out;
}

void RealRuntime::act(Instant, Action&& action, std::vector<Input>& events) {
  std::visit(Overloaded{
                 [&](Begin& a) { begin(a.launch); },
                 [&](Resume& a) { resume(a.key, events); },
                 [&](Release& a) { check("release", a.key, runtime_->release(a.key)); },
                 [&](Signal& a) { signal(a, events); },
                 [&](Kill& a) {
                   if (!give_up(a.key, events)) check("kill", a.key, runtime_->kill(a.key));
                 },
                 [&](SetFrozen& a) { check("freeze", a.key, runtime_->freeze(a.key, a.frozen)); },
                 [&](SetStepLimit& a) {
                   check("limit", a.key, runtime_->limit_step(a.key, a.step, a.time_limit));
                 },
                 [&](Notice& a) { check("notice", a.key, runtime_->notice(a.key, a.text)); },
                 [&](ProbeNetwork& a) { probe(a.probe); },
                 [&](WriteTokens& a) { secrets_.renew(a.tokens); },
                 [&](RepairGpu& a) {
                   if (options_.gpus != nullptr) options_.gpus->declared_well(a.uuid);
                 },
                 [&](Forget& a) {
                   sockets_.close(a.key);
                   checkpoints_.drop(a.key);
                   secrets_.end(a.key);
                   runtime_->forget(a.key);
                   if (options_.gpus != nullptr) options_.gpus->released(a.key);
                   if (options_.networks != nullptr) options_.networks->detach(a.key);
                 },
                 [](auto&) {},
             },
             action);
}

// A job that is told to end before any user process runs need not be prepared any further.
void RealRuntime::signal(const Signal& action, std::vector<Input>& events) {
  if (action.step) {
    check("signal", action.key,
          action.signal == SIGKILL
              ? runtime_->kill_step(action.key, *action.step)
              : runtime_->signal_step(action.key, *action.step, action.signal));
    return;
  }
  if (action.signal == SIGTERM && give_up(action.key, events)) return;
  auto sent = runtime_->signal(action.key, action.signal, action.scope);
  const bool not_yet = !sent && sent.error().code == ErrorCode::wrong_state;
  if (not_yet && action.signal != SIGTERM) return;
  if (not_yet) sent = runtime_->kill(action.key);
  check("signal", action.key, sent);
}

void RealRuntime::begin(proto::Launch& launch) {
  auto request = launch_request(launch, options_, socket_seen_by_job(launch.key));
  const AttemptKey key = launch.key;
  if (runtime_->probe().runtime == "process" &&
      !(options_.config.storage.empty() && launch.storage.empty()))
    return begin_prepared(key, fail(ErrorCode::unsupported,
                                    "the site's storage can be kept apart only in containers; "
                                    "this node uses 'process'"));
  if (auto r = write_secrets(launch, request); !r)
    return begin_prepared(key, tl::unexpected(r.error()));
  if (launch.node_index >= launch.placement.size()) return begin_prepared(key, request);
  const NodePlacement& here = launch.placement[launch.node_index];
  if (auto r = prepare_gres(here, request); !r)
    return begin_prepared(key, tl::unexpected(r.error()));
  preparing_.insert(key);
  if (options_.gpus == nullptr) return connect(key, std::move(request));
  options_.gpus->prepare(key, here.gpus, std::move(request),
                         [this, key](Result<runtime::LaunchRequest>&& prepared) {
                           if (preparing_.contains(key)) connect(key, std::move(prepared));
                         });
}

Result<void> RealRuntime::write_secrets(proto::Launch& launch, runtime::LaunchRequest& request) {
  if (launch.secrets.empty() && launch.identity.empty()) return {};
  if (runtime_->probe().runtime == "process")
    return fail(ErrorCode::unsupported,
                "secrets and identity tokens need a container runtime; this node uses 'process'");
  return secrets_.begin(launch, request);
}

// Makes the job's network, if it has one, and starts the attempt.
void RealRuntime::connect(const AttemptKey& key, Result<runtime::LaunchRequest>&& prepared) {
  if (!prepared || !prepared->parts) {
    preparing_.erase(key);
    return begin_prepared(key, prepared);
  }
  if (options_.networks == nullptr) {
    preparing_.erase(key);
    return begin_prepared(key, fail(ErrorCode::unavailable, "it makes no networks for jobs"));
  }
  if (runtime_->probe().runtime.starts_with("runc")) {
    preparing_.erase(key);
    return begin_prepared(key, fail(ErrorCode::unsupported,
                                    "networks of jobs need crun: runc enters no network namespace "
                                    "but one of the container's own user namespace"));
  }
  const proto::JobNetwork parts = *prepared->parts;
  options_.networks->attach(
      key, parts,
      [this, key, request = std::move(*prepared)](Result<JobNetworkPlace>&& place) mutable {
        if (preparing_.erase(key) == 0) return;  // given up meanwhile
        if (!place)
          return begin_prepared(
              key, fail(place.error().code, "the job's network: " + place.error().message));
        request.network_space = std::move(place->space);
        request.network_sys = std::move(place->sys);
        request.resolvers = std::move(place->resolvers);
        begin_prepared(key, std::move(request));
      });
}

// Answers later with an event; a node without networks of jobs answers too.
void RealRuntime::probe(const proto::ProbeAttempt& asked) {
  const auto answer = [this, ticket = asked.ticket](Result<proto::AttemptNetwork>&& found) {
    proto::AttemptProbed reply;
    reply.ticket = ticket;
    if (found)
      reply.network = std::move(*found);
    else
      reply.error = found.error().message;
    options_.on_event(NetworkProbed{std::move(reply)});
  };
  if (options_.networks == nullptr)
    return answer(fail(ErrorCode::unavailable, "it makes no networks for jobs"));
  options_.networks->probe(asked.key, asked.target, answer);
}

Result<void> RealRuntime::prepare_gres(const NodePlacement& here,
                                       runtime::LaunchRequest& request) const {
  if (options_.gres != nullptr) return options_.gres->prepare(here.gres, request);
  if (here.gres.empty()) return {};
  return fail(ErrorCode::unavailable, here.gres.front().name + " is not there");
}

void RealRuntime::begin_prepared(const AttemptKey& key,
                                 const Result<runtime::LaunchRequest>& request) {
  const auto started = request.and_then([&](const auto& r) { return runtime_->begin(r); });
  if (!started) secrets_.end(key);
  if (!started)
    return options_.on_event(
        BeginFailed{key, fmt::format("node {}: {}", options_.node, started.error().message)});
  log_.info("job begins",
            {{"job", key.job}, {"attempt", key.attempt}, {"user", request->owner.user}});
  open_socket(key, request->owner.uid);
  watch_checkpoints(*request);
}

// Returns true if its GPUs or its network were still being prepared: then nothing of it has begun,
// and nothing will.
bool RealRuntime::give_up(const AttemptKey& key, std::vector<Input>& events) {
  if (preparing_.erase(key) == 0) return false;
  if (options_.gpus != nullptr) options_.gpus->released(key);
  if (options_.networks != nullptr) options_.networks->detach(key);
  secrets_.end(key);
  events.emplace_back(BeginFailed{key, "it ended before its devices and its network were ready"});
  return true;
}

// Reports the end together with the job's use of its GPUs, which is read first.
void RealRuntime::end(const AttemptKey& key, Exit exit, std::vector<Input>& events) {
  if (options_.gpus == nullptr) return void(events.emplace_back(Ended{key, std::move(exit)}));
  auto ended = std::make_shared<Ended>(Ended{key, std::move(exit)});
  options_.gpus->finish(key, [this, ended](std::vector<GpuUsage>&& usage) {
    ended->exit.usage.gpus = std::move(usage);
    options_.on_event(std::move(*ended));
  });
}

// Watches the checkpoint file whose path was given to the job on its first node.
void RealRuntime::watch_checkpoints(const runtime::LaunchRequest& request) {
  if (request.node_index == 0 && !request.checkpoint_file.empty())
    checkpoints_.watch(request.key, request.owner, request.checkpoint_file,
                       {options_.config.storage, request.storage});
}

void RealRuntime::resume(const AttemptKey& key, std::vector<Input>& events) {
  const auto started = runtime_->resume(key);
  if (!started) {
    events.emplace_back(
        BeginFailed{key, fmt::format("node {}: {}", options_.node, started.error().message)});
    return;
  }
  if (const auto owner = runtime_->owner_of(key)) open_socket(key, owner->uid);
}

// A job without its socket still runs; only commands inside it cannot reach the controller.
void RealRuntime::open_socket(const AttemptKey& key, Uid owner) {
  if (const auto opened = sockets_.open(key, owner, runtime_->run_dir(key)); !opened)
    log_.warning("a job has no socket", {{"job", key.job}, {"why", opened.error().message}});
}

std::string RealRuntime::socket_seen_by_job(const AttemptKey& key) const {
  const bool contained = runtime_->probe().runtime != "process";
  return fmt::format("{}/{}", contained ? kRunInContainer : runtime_->run_dir(key), kJobSocketName);
}

void RealRuntime::poll(Instant, std::vector<Input>& events) {
  for (auto& event : runtime_->poll()) {
    switch (event.kind) {
      case runtime::EventKind::held: events.emplace_back(Held{event.key}); break;
      case runtime::EventKind::running: events.emplace_back(Running{event.key, event.at}); break;
      case runtime::EventKind::ended:
        sockets_.close(event.key);
        checkpoints_.drop(event.key);
        secrets_.end(event.key);
        log_.info("job ended", {{"job", event.key.job},
                                {"attempt", event.key.attempt},
                                {"cause", enum_name(event.record.cause)},
                                {"code", event.record.exit.code},
                                {"signal", event.record.exit.signal},
                                {"message", event.record.message}});
        end(event.key, exit_of(event.record), events);
        break;
      case runtime::EventKind::step_ended:
        if (on_step_ended) on_step_ended(event);
        break;
    }
  }
}

void RealRuntime::check(const char* what, const AttemptKey& key, const Result<void>& result) {
  if (result || result.error().code == ErrorCode::not_found) return;  // the attempt has just ended
  log_.warning("an action on a job failed", {{"action", what},
                                             {"job", key.job},
                                             {"attempt", key.attempt},
                                             {"why", result.error().message}});
}

}  // namespace gantry::node
