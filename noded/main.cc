// gantry-noded: reads options, configuration and keys, opens the runtime, and runs the loop until a
// signal ends it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/proto/job_network.h"
#include "common/proto/meeting_point.h"
#include "common/version.h"
#include "noded/daemon.h"
#include "noded/exporter.h"
#include "noded/neighbour_watch.h"
#include "noded/network_orders.h"
#include "noded/null_runtime.h"
#include "noded/options.h"
#include "noded/real_runtime.h"
#include "noded/runtime/job_dir.h"
#include "noded/steps/step_service.h"

namespace gantry::node {
namespace {

std::string directory_of_this_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string_view text(path, n > 0 ? static_cast<std::size_t>(n) : 0);
  const auto slash = text.rfind('/');
  return std::string(text.substr(0, slash == std::string_view::npos ? 0 : slash));
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return std::string(name, std::string_view(name).find('.') == std::string_view::npos
                               ? std::string_view(name).size()
                               : std::string_view(name).find('.'));
}

// Everything that is checked before the loop runs.
struct Start {
  NodeSettings settings;
  runtime::NodeFacts machine;
  net::DealerOptions link;
};

Result<Start> prepare(Options options) {
  if (options.config.empty()) options.config = default_config_path();
  if (options.node.empty()) options.node = host_name();
  ASSIGN(config, load_config(options.config));
  ASSIGN(settings, settle(options, std::move(*config)));
  Start out;
  out.settings = std::move(*settings);
  const ControllerConfig& controller = out.settings.config.controller;
  ASSIGN(key_text, runtime::read_file(controller.public_key_file));
  const auto server = net::parse_public_key(*key_text);
  if (!server)
    return fail(server.error().code,
                fmt::format("{}: {}", controller.public_key_file, server.error().message));
  out.link.endpoint = fmt::format("tcp://{}:{}", controller.host, controller.port);
  const std::string& key_file = out.settings.config.noded.key_file;
  if (!options.enroll.empty())
    TRY(enroll_once(options.enroll, key_file, out.settings.node.name, out.link.endpoint, *server));
  ASSIGN(keys, net::load_key_pair(key_file));
  out.link.server_key = *server;
  out.link.keys = *keys;
  return out;
}

Result<std::unique_ptr<AttemptRuntime>> open_runtime(const Start& start, JobSockets& sockets,
                                                     RealRuntimeOptions real, loop::Loop& loop,
                                                     const Logger& log) {
  const NodeSettings& s = start.settings;
  if (s.runs_nothing) {
    log.warning(
        "RUNTIME \"none\": NO JOB WILL RUN. Each ends at once as if it had; for benches only");
    return std::make_unique<NullRuntime>();
  }
  tidy_images(s.config.noded);
  runtime::RuntimeOptions options;
  options.node = s.node.name;
  options.cluster = s.config.cluster;
  options.config = s.config.noded;
  options.bin_dir = directory_of_this_program();
  if (real.gpus != nullptr) options.device_majors = real.gpus->majors();
  if (real.gres != nullptr)
    for (const std::uint32_t major : real.gres->majors()) options.device_majors.push_back(major);
  if (s.node.scratch > 0) options.scratch_dir = s.config.noded.state_dir + "/scratch";
  ASSIGN(opened, runtime::Runtime::open(std::move(options)));
  const runtime::ProbeReport& probe = (*opened)->probe();
  for (const auto& why : probe.refused) log.warning("runtime not used", {{"why", why}});
  log.info("runtime chosen", {{"runtime", probe.runtime}, {"cgroup", probe.cgroup_version}});
  for (const auto& layer : probe.layers_on) log.info("isolation layer on", {{"layer", layer}});
  for (const auto& layer : probe.layers_off) log.warning("isolation layer OFF", {{"layer", layer}});
  for (const SandboxFact& fact : probe.sandboxes)
    if (fact.why_not.empty())
      log.info("sandbox", {{"level", enum_name(fact.level)}});
    else
      log.info("no sandbox", {{"level", enum_name(fact.level)}, {"why", fact.why_not}});
  return std::make_unique<RealRuntime>(std::move(*opened), std::move(real), sockets, loop, log);
}

// Returns null if no GPUs are declared, or the node runs no jobs.
std::unique_ptr<Gpus> open_gpus(const Start& start, loop::Loop& loop, const Logger& log) {
  const NodeSettings& s = start.settings;
  if (s.node.gpus == 0 || s.runs_nothing) return nullptr;
  GpuTimes times;
  times.sample = s.config.noded.gpu_sample;
  auto gpus = std::make_unique<Gpus>(s.config.noded, s.node, start.machine.boot_id,
                                     directory_of_this_program(), loop, log, times);
  const GpuInventory& found = gpus->inventory();
  if (found.gpus.size() < s.node.gpus)
    log.warning("fewer GPUs than declared",
                {{"declared", s.node.gpus}, {"found", found.gpus.size()}, {"why", found.why_none}});
  return gpus;
}

std::vector<SandboxFact> sandboxes_of(AttemptRuntime& attempts) {
  auto* containers = dynamic_cast<RealRuntime*>(&attempts);
  return containers == nullptr ? std::vector<SandboxFact>()
                               : containers->runtime().probe().sandboxes;
}

// Returns null if jobs have no networks here: the cluster has none, or this daemon is not root.
std::unique_ptr<JobNetworks> open_networks(const Start& start, loop::Loop& loop,
                                           const Logger& log) {
  const NodeSettings& s = start.settings;
  if (!s.config.controller.job_networks || s.runs_nothing || ::geteuid() != 0) return nullptr;
  return std::make_unique<JobNetworks>(network_options(s), loop, log);
}

// Puts into `facts` how other nodes reach the jobs here, or returns why there are no networks of
// jobs.
std::string lacks_networks(const Start& start, const AttemptRuntime& runtime,
                           proto::NodeRegister& facts) {
  if (::geteuid() != 0) return "the node daemon is not root";
  if (!runtime.name().starts_with("crun"))
    return "they need crun, and jobs run by " + runtime.name();
  const NodeConfig& node = start.settings.node;
  auto said = try_job_networks(network_options(start.settings),
                               start.settings.config.noded.run_dir + "/network-trial",
                               node.address.empty() ? facts.address : node.address);
  if (!said) return said.error().message;
  facts.transport = std::move(*said);
  return {};
}

// Adds the runtime to the facts, and why this node makes no networks of jobs if the cluster has
// them.
void add_layers_off(const Start& start, const AttemptRuntime& runtime,
                    const NeighbourWatch* neighbours, const Logger& log,
                    proto::NodeRegister& facts) {
  std::vector<std::string>& out = facts.layers_off;
  out = runtime.layers_off();
  if (neighbours != nullptr)
    for (const std::string& what : neighbours->not_counted())
      if (what.starts_with("pressure")) out.push_back("neighbours, " + what);
  if (!start.settings.config.controller.job_networks || start.settings.runs_nothing) return;
  const std::string why = lacks_networks(start, runtime, facts);
  if (why.empty()) return;
  out.push_back(std::string(proto::kNoJobNetworks) + why);
  log.warning("isolation layer OFF", {{"layer", out.back()}});
}

// Returns null if neighbours are not watched: that is switched off, or jobs have no cgroups here.
std::unique_ptr<NeighbourWatch> watch_neighbours(const Start& start, AttemptRuntime& attempts,
                                                 JobNetworks* networks, loop::Loop& loop,
                                                 const Logger& log) {
  const NodedConfig& config = start.settings.config.noded;
  auto* containers = dynamic_cast<RealRuntime*>(&attempts);
  if (!config.neighbours || containers == nullptr) return nullptr;
  runtime::Runtime& runtime = containers->runtime();
  if (runtime.cgroups().version == 0) return nullptr;
  NeighbourWatch::Options o;
  o.state_dir = config.state_dir;
  o.config = config;
  o.cgroups = runtime.cgroups();
  o.running = [&runtime] { return watched(runtime.running()); };
  if (networks != nullptr)
    o.limit_link = [networks](const auto& key, network::Fabric::Way way, std::uint64_t most) {
      networks->hold(key, way, most);
    };
  auto out = std::make_unique<NeighbourWatch>(std::move(o), loop, log);
  for (const std::string& what : out->not_counted())
    log.info("not counted of neighbours", {{"what", what}});
  return out;
}

// Throttled jobs are released while links can still be changed; `networks` is null if links stay.
void end_sharing(NeighbourWatch* neighbours, JobNetworks* networks) {
  if (neighbours != nullptr) neighbours->let_go();
  if (networks != nullptr) networks->leave();
}

// Returns null if the node serves no metrics, or runs no jobs.
Result<std::unique_ptr<Exporter>> open_exporter(const Start& start, AttemptRuntime& attempts,
                                                const Gpus* gpus, JobNetworks* networks,
                                                loop::Loop& loop, const Logger& log) {
  const Config& config = start.settings.config;
  auto* containers = dynamic_cast<RealRuntime*>(&attempts);
  ASSIGN(port, metrics_port(config, start.settings.node.name));
  if (*port == 0 || containers == nullptr) return std::unique_ptr<Exporter>();
  runtime::Runtime& runtime = containers->runtime();
  Exporter::Parts parts;
  parts.node = start.settings.node.name;
  parts.host = config.noded.metrics_host;
  parts.tokens = config.noded.metrics_tokens;
  parts.port = *port;
  parts.sampling = {runtime.cgroups(), "/proc", "/sys",
                    static_cast<std::uint64_t>(config.noded.memory_bandwidth)};
  parts.running = [&runtime] { return runtime.running(); };
  parts.activity = [containers] { return containers->gpu_activity(); };
  if (gpus != nullptr) parts.inventory = [gpus] { return gpus->inventory(); };
  parts.networks = networks;
  return Exporter::open(std::move(parts), loop, log);
}

// Reports to the controller the end of a step if nobody else will report it.
void tell_unheard_ends(AttemptRuntime& attempts, const std::unique_ptr<Daemon>& daemon,
                       const Logger& log) {
  auto* containers = dynamic_cast<RealRuntime*>(&attempts);
  if (containers == nullptr) return;
  containers->on_step_ended = [&daemon, &log](const runtime::RuntimeEvent& event) {
    if (!event.record.unheard || !daemon || daemon->relay(unheard_end(event))) return;
    log.warning("the end of a step could not be told: its job keeps its cores",
                {{"job", event.key.job}, {"step", event.step}});
  };
}

// Returns an empty list if the node's CPUs are the machine's.
std::vector<std::uint16_t> shared_cpus(const Start& start) {
  std::vector<std::uint16_t> cpus;
  if (start.settings.share_cpus)
    for (const runtime::CpuFact& c : start.machine.cpus) cpus.push_back(c.id);
  return cpus;
}

// Addresses that are names are left out, because the site's resolver resolves those.
std::map<std::string, std::string> numeric_addresses(const Config& config) {
  std::map<std::string, std::string> out;
  for (const NodeConfig& node : config.nodes) {
    const std::string host = host_of(node.address);
    std::array<unsigned char, sizeof(in6_addr)> bytes{};
    if (::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
        ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1)
      out[node.name] = host;
  }
  return out;
}

std::map<std::uint16_t, std::uint32_t> sockets_of_cpus(const Start& start) {
  std::map<std::uint16_t, std::uint32_t> of;
  for (const runtime::CpuFact& cpu : start.machine.cpus) of[cpu.id] = cpu.socket;
  return of;
}

Result<std::unique_ptr<StepService>> open_steps(const Start& start, AttemptRuntime& attempts,
                                                loop::Loop& loop, const Logger& log,
                                                JobSockets& sockets) {
  std::unique_ptr<StepRuntime> runtime;
  std::function<std::string(const proto::AttemptKey&)> job_socket;
  if (auto* containers = dynamic_cast<RealRuntime*>(&attempts)) {
    runtime = of_containers(containers->runtime());
    job_socket = [containers](const auto& key) { return containers->socket_seen_by_job(key); };
  } else {
    runtime = std::make_unique<NullSteps>(dynamic_cast<NullRuntime&>(attempts), loop);
  }
  const NodedConfig& c = start.settings.config.noded;
  return StepService::open({start.settings.node.name, c.listen_host, c.listen_port,
                            directory_of_this_program() + "/gantry-shim", start.link.keys,
                            shared_cpus(start), sockets_of_cpus(start), std::move(job_socket)},
                           loop, log, std::move(runtime), sockets);
}

// Returns null if this is no login node. A failure to make the socket is no error, because commands
// then connect to the controller directly.
std::unique_ptr<UserSocket> open_user_socket(const Start& start, loop::Loop& loop,
                                             const Logger& log, std::uint64_t first_channel,
                                             UserSocket::Hooks hooks) {
  const Config& config = start.settings.config;
  const auto& named = config.controller.login_nodes;
  if (std::ranges::find(named, start.settings.node.name) == named.end()) return nullptr;
  auto socket =
      std::make_unique<UserSocket>(loop, log,
                                   UserSocket::Options{net::to_z85(start.link.server_key),
                                                       config.noded.cgroup_root, first_channel},
                                   std::move(hooks));
  if (const auto done = socket->open(config.noded.run_dir); !done) {
    log.error("commands cannot ask through this node", {{"why", done.error().message}});
    return nullptr;
  }
  return socket;
}

// Returns true if the configuration was read again and is valid; `next` then has it. `before` is
// released once the daemon runs.
Result<bool> run(const Start& start, const Options& options, std::optional<Start>& before,
                 std::optional<Start>& next, Logger& log) {
  ASSIGN(memory, MemoryFile::open(start.settings.config.noded.state_dir));
  ASSIGN(link, net::Dealer::open(start.link));
  loop::Loop loop;
  std::unique_ptr<Daemon> daemon;
  JobSockets::Hooks hooks;
  hooks.relay = [&](proto::NodeRelay&& relay) { return daemon && daemon->relay(relay); };
  const auto first_channel = static_cast<std::uint64_t>(runtime::wall_clock().us);
  std::unique_ptr<StepService> steps;
  hooks.local = [&](JobConnection& connection, net::StreamMessage& message) {
    return steps && steps->local(connection, message);
  };
  JobSockets sockets(loop, log, first_channel, std::move(hooks));
  UserSocket::Hooks user_hooks;
  user_hooks.relay = [&](const proto::UserRelay& relay) { return daemon && daemon->relay(relay); };
  user_hooks.gone = [&](const proto::UsersGone& gone) { return daemon && daemon->relay(gone); };
  const auto users = open_user_socket(start, loop, log, first_channel, std::move(user_hooks));
  const std::unique_ptr<Gpus> gpus = open_gpus(start, loop, log);
  std::unique_ptr<Gres> gres;
  if (!start.settings.node.gres.empty() && !start.settings.runs_nothing)
    gres = std::make_unique<Gres>(start.settings.config.noded, start.settings.node, log);
  const std::unique_ptr<JobNetworks> networks = open_networks(start, loop, log);
  RealRuntimeOptions real{start.settings.config.cluster,
                          start.settings.node.name,
                          start.settings.config.noded,
                          gpus.get(),
                          gres.get(),
                          networks.get(),
                          shared_cpus(start),
                          numeric_addresses(start.settings.config),
                          {}};
  real.on_event = [&](Input&& event) { daemon->take(std::move(event)); };
  ASSIGN(attempt_runtime, open_runtime(start, sockets, std::move(real), loop, log));
  ASSIGN(service, open_steps(start, **attempt_runtime, loop, log, sockets));
  steps = std::move(*service);
  tell_unheard_ends(**attempt_runtime, daemon, log);
  const auto neighbours = watch_neighbours(start, **attempt_runtime, networks.get(), loop, log);

  const auto exporter =
      open_exporter(start, **attempt_runtime, gpus.get(), networks.get(), loop, log);
  if (!exporter) return tl::unexpected(exporter.error());
  FactsReport report = node_facts(start.settings, start.machine);
  for (const auto& warning : report.warnings)
    log.warning("less than declared", {{"what", warning}});
  report.facts.runtime = (*attempt_runtime)->name();
  if (gres) report.facts.gres = gres->counts();
  add_layers_off(start, **attempt_runtime, neighbours.get(), log, report.facts);
  report.facts.sandboxes = sandboxes_of(**attempt_runtime);

  std::function<GpuInventory()> inventory;
  if (gpus) inventory = [&gpus] { return gpus->inventory(); };
  daemon = std::make_unique<Daemon>(
      loop, log,
      Daemon::Parts{std::move(report.facts), std::move(*memory), std::move(*link),
                    std::move(*attempt_runtime), std::move(inventory),
                    start.settings.config.noded.storage});
  daemon->on_permission_key = [&](std::string_view key) {
    if (steps) steps->set_permission_key(key);
  };
  if (neighbours) daemon->sharing = [&neighbours] { return neighbours->said(); };
  bool ended = false;  // a signal ended the daemon, so no other is started
  daemon->on_reread = [&] {
    if (ended) return;
    auto again = prepare(options);
    if (!again) {
      log.error("the configuration is as it was", {{"why", again.error().message}});
      return;
    }
    next = std::move(*again);
    daemon->make_way();
  };
  const auto stop = [&] {
    ended = true;
    next.reset();
    daemon->stop();
  };
  const auto end = loop.on_signal(SIGTERM, stop);
  const auto interrupt = loop.on_signal(SIGINT, stop);
  const auto rotate = loop.on_signal(SIGHUP, [&] {
    if (const auto again = log.reopen(); !again)
      log.error("the log file could not be reopened", {{"why", again.error().message}});
  });
  daemon->start(sockets, users.get());
  if (gpus) gpus->watch([&](const GpuInventory& now) { daemon->gpus_changed(now); });
  log.info("node daemon started", {{"node", start.settings.node.name},
                                   {"version", kVersion},
                                   {"controller", start.link.endpoint}});
  before.reset();
  loop.run();
  end_sharing(neighbours.get(), next ? nullptr : networks.get());
  log.info(next ? "node daemon starts anew" : "node daemon stopped; its jobs run on");
  if (const auto failure = daemon->failure()) return tl::unexpected(*failure);
  return next.has_value();
}

void look_at_machine(Start& start) {
  const NodeSettings& settings = start.settings;
  start.machine = runtime::discover_node(settings.node.scratch > 0 ? settings.config.noded.state_dir
                                                                   : std::string());
}

// Runs one daemon after the other, each with the configuration at its start. If a daemon cannot
// start, the next one uses the previous configuration.
Result<void> serve(Start start, const Options& options, Logger& log) {
  std::optional<Start> before;
  while (true) {
    look_at_machine(start);
    std::optional<Start> next;
    const auto again = run(start, options, before, next, log);
    if (!again && !before) return tl::unexpected(again.error());
    if (!again) {
      log.error("the configuration is as it was", {{"why", again.error().message}});
      start = std::move(*before);
      before.reset();
      continue;
    }
    if (!*again) return {};
    before = std::exchange(start, std::move(*next));
  }
}

// Files of each job's cgroup stay open, and so do networks that are made in advance; the usual
// limit of 1,024 would be enough for about 60 jobs. Limits of jobs are set separately.
void open_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  constexpr rlim_t kEnough = 65'536;
  files.rlim_cur = std::max(files.rlim_cur, std::min(files.rlim_max, kEnough));
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

int main_of(const std::vector<std::string>& args) {
  const auto refuse = [](const Error& error) {
    std::fprintf(stderr, "gantry-noded: %s\n", error.message.c_str());
    return exit_status_of(error.code);
  };
  const auto options = parse_options(args);
  if (!options) return refuse(options.error());
  if (options->help || options->version) {
    const std::string text =
        options->help ? usage_text() : fmt::format("gantry-noded {}\n", kVersion);
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  if (options->images) {
    const auto config =
        load_config(options->config.empty() ? default_config_path() : options->config);
    if (!config) return refuse(config.error());
    std::fputs(image_table(config->noded).c_str(), stdout);
    return 0;
  }
  auto log = Logger::open({"noded", options->log_file, options->log_level});
  if (!log) return refuse(log.error());
  auto start = prepare(*options);
  if (!start) return refuse(start.error());
  open_many_files();
  if (const auto done = serve(std::move(*start), *options, *log); !done) {
    log->error(done.error().message);
    return refuse(done.error());
  }
  return 0;
}

}  // namespace
}  // namespace gantry::node

int main(int argc, char** argv) {
  // Secrets of jobs are in its memory, and must not get into a core dump. A daemon that is not root
  // gets none, and needs its own files of /proc.
  if (::geteuid() == 0) ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  return gantry::node::main_of({argv + 1, argv + argc});
}
