// gantry up: a whole cluster on this machine, for personal work, demos and tests.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <ctime>
#include <set>

#include "cli/cluster/daemons.h"
#include "cli/cluster/local_cluster.h"
#include "cli/columns/job_words.h"
#include "cli/command.h"
#include "cli/commands/progress.h"
#include "cli/session.h"
#include "cli/slurm/help.h"
#include "cli/table.h"
#include "common/fd.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"

namespace gantry::cli::gantry_up {

extern const Command kUp;

namespace {

constexpr Duration kStartTimeout = seconds(60);  // to wait until all nodes are up
constexpr Duration kStopTimeout = seconds(15);   // to stop one daemon
constexpr Duration kLook = milliseconds(100);
void pause() {
  const timespec time{0, kLook.us * 1'000};
  ::nanosleep(&time, nullptr);
}

// ---- up
struct Up {
  ClusterRequest request;
  std::string directory;
  bool sized = false;     // an option was given that sets sizes of a new cluster
  unsigned restarts = 5;  // crashes within a minute after which a daemon is left stopped
};

Result<void> set_nodes(Up& up, std::string_view text) {
  ASSIGN(n, parse_integer("the number of nodes", text, 1, 256));
  up.request.nodes = static_cast<std::uint32_t>(*n);
  up.sized = true;
  return {};
}
Result<void> set_cpus(Up& up, std::string_view text) {
  ASSIGN(n, parse_integer("the number of cores of a node", text, 1, 4096));
  up.request.cpus = static_cast<std::uint32_t>(*n);
  up.sized = true;
  return {};
}
Result<void> set_memory(Up& up, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  up.request.memory = *bytes;
  up.sized = true;
  return {};
}
Result<void> set_name(Up& up, std::string_view text) {
  if (text.empty() || text.size() > 64 ||
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
          std::string_view::npos)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a name; use letters, digits, - and _", text));
  up.request.name = text;
  up.sized = true;
  return {};
}
Result<void> add_user(Up& up, std::string_view text) {
  for (std::string& user : split_list(text)) up.request.users.push_back(std::move(user));
  up.sized = true;
  return {};
}
Result<void> set_runtimes(Up& up, std::string_view text) {
  up.request.runtimes = split_list(text);
  for (const std::string& runtime : up.request.runtimes)
    if (runtime != "crun" && runtime != "runc" && runtime != "process" && runtime != "none" &&
        !runtime.starts_with('/'))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is not crun, runc, process or a path", runtime));
  up.sized = true;
  return {};
}
constexpr Option kUpOptions[] = {
    takes("cpus", "N", "Cores of each node (default: an equal share)", call<set_cpus>),
    takes("memory", "SIZE", "Memory of each node: 2G (default: an equal share of four fifths)",
          call<set_memory>),
    takes("name", "NAME", "Name of the cluster (default: local)", call<set_name>),
    flag("no-gate",
         "Without a gate. Otherwise one takes requests to services on loopback, where HAProxy is "
         "installed",
         does<[](Up& up) {
           up.request.gate = false;
           up.sized = true;
         }>),
    flag("no-job-networks",
         "Give jobs loopback alone. Otherwise a job of a cluster of root has a network of its own, "
         "over which its nodes reach each other; several nodes need Linux 6.3 for it",
         does<[](Up& up) {
           up.request.job_networks = false;
           up.sized = true;
         }>),
    takes("nodes", "N", "Number of nodes (default: one per core, at most four)", call<set_nodes>),
    flag("oversubscribe", "Let nodes share cores and memory of the machine", does<[](Up& up) {
           up.request.oversubscribe = true;
           up.sized = true;
         }>),
    takes("restarts", "N",
          "Crashes within a minute after which a daemon is left stopped (default 5); until then it "
          "is started again. 0: never again",
          number<"the number of crashes", 0, 1'000'000, &Up::restarts>),
    flag("root-jobs", "Let root run jobs too, for development", does<[](Up& up) {
           up.request.root_jobs = true;
           up.sized = true;
         }>),
    takes("runtime", "NAME,...",
          "Container runtimes to try in order (default crun,runc); process runs jobs without a "
          "container, for development only",
          call<set_runtimes>),
    takes("state", "DIR",
          "Where everything is kept (default /var/lib/gantry/local for root, ~/.local/state/gantry "
          "for others)",
          put<&Up::directory>),
    takes("user", "USER,...", "Make a key for these users, so that they need no munge (root)",
          call<add_user>),
};

std::string ended(const Daemon& daemon) {
  const std::string log = log_tail(daemon, 4);
  std::string text = fmt::format("{} has ended; its log says:\n{}", daemon.name, log);
  if (text.ends_with('\n')) text.pop_back();
  if (log.find("no container runtime works") != std::string::npos)
    text += "\nFor development, `gantry up --runtime process` runs jobs without containers.";
  return text;
}

// Counts how many nodes are up. It is an error if a daemon has ended.
Result<proto::ListNodesReply> look(const LocalCluster& cluster,
                                   const std::vector<Daemon>& daemons) {
  for (const Daemon& daemon : daemons)
    if (!running_pid(daemon)) return fail(ErrorCode::runtime_failed, ended(daemon));
  ASSIGN(client, cluster.client());
  ASSIGN(session, Session::open("gantry", *client));
  return session->call<proto::ListNodesReply>(proto::ListNodes{});
}

Result<proto::ListNodesReply> wait_until_up(const LocalCluster& cluster,
                                            const std::vector<Daemon>& daemons) {
  Progress progress;
  const Instant deadline = system_now() + kStartTimeout;
  progress.say("starting the controller");
  while (true) {
    const auto reply = look(cluster, daemons);
    if (!reply && !may_retry(reply.error().code)) {
      progress.end();
      return reply;
    }
    std::size_t up = 0;
    if (reply) {
      for (const proto::NodeRow& node : reply->nodes) up += node.health == NodeHealth::up ? 1 : 0;
      progress.say(fmt::format("starting: {} of {} nodes are up", up, reply->nodes.size()));
      if (up == reply->nodes.size()) {
        progress.end();
        return reply;
      }
    }
    if (system_now() > deadline) {
      progress.end();
      return fail(
          ErrorCode::timed_out,
          fmt::format("not all nodes came up within {} s; look at the logs beside {}, and stop "
                      "with `gantry down`",
                      kStartTimeout.seconds(), daemons[0].log_file));
    }
    pause();
  }
}

void print_gate(const LocalCluster& cluster, const Config& config) {
  if (config.gate.state_dir == cluster.directory() + "/gate")
    fmt::print("Services (gctl service) answer at http://{}.\n", config.gate.listen.front());
  else
    fmt::print("It has no gate for services: HAProxy is not installed, or --no-gate was given.\n");
}

void print_next(const LocalCluster& cluster, const Config& config,
                const proto::ListNodesReply& nodes) {
  const NodeConfig& first = config.nodes.front();
  fmt::print("Cluster {} is up: {} with {} and {} of memory each.\n", config.cluster,
             counted(static_cast<std::int64_t>(config.nodes.size()), "node"),
             counted(first.cpus, "core"), format_memory(first.memory));
  std::set<std::string> runtimes;
  std::set<std::string> off;
  for (const proto::NodeRow& node : nodes.nodes) {
    runtimes.insert(node.runtime);
    off.insert(node.layers_off.begin(), node.layers_off.end());
  }
  for (const std::string& runtime : runtimes) fmt::print("Jobs run with {}.\n", runtime);
  if (off.empty()) {
    fmt::print("All isolation layers are on.\n");
  } else {
    fmt::print("Isolation layers that are off here:\n");
    for (const std::string& layer : off) fmt::print("  - {}\n", layer);
  }
  if (!config.controller.job_networks)
    fmt::print("Jobs have loopback only: {}.\n",
               ::geteuid() != 0 ? "a cluster of an ordinary user makes no networks for jobs"
                                : "controller.job_networks is off in its gantry.yaml");
  if (!config.controller.allow_munge)
    fmt::print(
        "Munge does not answer here: only users with a key can submit (gantry up --user).\n");
  if (::geteuid() == 0 && !config.noded.allow_root_jobs)
    fmt::print("Jobs do not run as root: submit as another user, or start with --root-jobs.\n");
  print_gate(cluster, config);
  fmt::print("\nNext:\n");
  const auto paths = client_config_paths();
  const std::string own = cluster.directory() + "/client.conf";
  bool found_first = false;
  for (const std::string& path : paths) {
    if (path == own) found_first = true;
    if (path == own || ::access(path.c_str(), F_OK) == 0) break;
  }
  if (!found_first) fmt::print("  export GANTRY_CONF={}\n", cluster.directory());
  fmt::print("  gbatch --wrap='hostname; sleep 10'\n  gqueue\n  gacct\n");
  const std::string slurm = slurm::names_directory();
  if (!slurm.empty())
    fmt::print("  PATH={}:$PATH        # sbatch, squeue, scancel, ... as in Slurm\n", slurm);
  fmt::print("  gantry down{}\n",
             found_first ? "" : fmt::format(" --state {}", cluster.directory()));
}

// Root's calls wait for each other from the choice of ports until the daemons listen on them, so
// two clusters that are started at the same time do not choose the same port. The file is in a
// directory in which root alone can write: nobody else can keep root waiting.
Fd wait_for_other_calls() {
  if (::geteuid() != 0) return Fd();
  Fd lock(::open("/run/gantry-up.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    Progress progress;
    progress.say("waiting for another call of gantry up");
    ::flock(lock.get(), LOCK_EX);
    progress.end();
  }
  return lock;
}

Result<int> run_up(const Invocation& in) {
  Up up;
  OPERANDS(operands, in, &up, 0, 0);
  ASSIGN(cluster, LocalCluster::at(up.directory));
  if (cluster->exists() && up.sized)
    return fail(
        ErrorCode::already_exists,
        fmt::format("{} holds a cluster already; start it as it is with `gantry up` alone, or "
                    "remove it with `gantry down --remove`",
                    cluster->directory()));
  const bool is_new = !cluster->exists();
  for (const char* name : {"gantry-ctld", "gantry-noded"})  // checked before anything is written
    TRY(find_program(name));
  const Fd lock = wait_for_other_calls();
  if (is_new) {
    ASSIGN(machine, look_at_machine());
    ASSIGN(request, settle_sizes(up.request, *machine));
    TRY(cluster->create(*request, *machine));
  }
  ASSIGN(config, cluster->config());
  ASSIGN(daemons, cluster->daemons(*config));
  std::vector<const Daemon*> started;
  for (const Daemon& daemon : *daemons) {
    if (running_pid(daemon)) continue;
    TRY(start_daemon(daemon, up.restarts));
    started.push_back(&daemon);
  }
  const auto nodes = wait_until_up(*cluster, *daemons);
  if (!nodes) {
    // The daemons that this call started are stopped, so that nothing is left half running.
    for (const Daemon* daemon : started) (void)stop_daemon(*daemon, kStopTimeout);
    if (is_new) (void)cluster->remove();
    return tl::unexpected(nodes.error());
  }
  if (started.empty()) fmt::print("It was running already.\n");
  print_next(*cluster, *config, *nodes);
  return 0;
}

}  // namespace

const Command kUp{
    {"up", "Start a whole cluster on this machine"},
    {.description = "Makes keys and a gantry.yaml in a directory of its own, starts a controller "
                    "and node daemons, and waits until all nodes are up. Where HAProxy is "
                    "installed there is a gate for services, too. An ordinary user's "
                    "containers are rootless; it says which layers of isolation are off then. "
                    "A daemon that crashes is started again.",
     .options = kUpOptions,
     .examples = {{"gantry up", "Start a cluster, or the one that was stopped here"},
                  {"gantry up --nodes 4 --cpus 1 --memory 1G --oversubscribe",
                   "Four nodes on a small machine"},
                  {"gantry status", "Which daemons run"},
                  {"gantry down --cancel", "Cancel all jobs and stop it"}},
     .exits = {{"0", "all nodes are up"},
               {"1", "it did not start"},
               {"2", "the command line is wrong"}},
     .run = run_up}};

}  // namespace gantry::cli::gantry_up
