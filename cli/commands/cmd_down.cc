// gantry down, status: stops the cluster of `gantry up`, and shows which of its daemons run.
#include <fmt/core.h>

#include <ctime>
#include <map>

#include "cli/cluster/daemons.h"
#include "cli/cluster/local_cluster.h"
#include "cli/columns/job_words.h"
#include "cli/command.h"
#include "cli/commands/progress.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"

namespace gantry::cli::gantry_down {

extern const Command kDown;
extern const Command kStatus;

namespace {

constexpr Duration kStopTimeout = seconds(15);    // to stop one daemon
constexpr Duration kCancelTimeout = seconds(30);  // until cancelled jobs have ended
constexpr Duration kLook = milliseconds(100);
void pause() {
  const timespec time{0, kLook.us * 1'000};
  ::nanosleep(&time, nullptr);
}

// The cluster that `gantry up` made there; an error if there is none.
Result<LocalCluster> cluster_in(const std::string& directory) {
  auto cluster = LocalCluster::at(directory);
  if (cluster && !cluster->exists())
    return fail(ErrorCode::not_found,
                fmt::format("there is no cluster in {}", cluster->directory()));
  return cluster;
}

// ---- down
struct Down {
  std::string directory;
  bool cancel = false;
  bool leave = false;
  bool remove = false;
};
constexpr Option kDownOptions[] = {
    flag("cancel", "Cancel all jobs first", put<&Down::cancel>),
    flag("leave",
         "Leave the jobs as they are: running ones go on, and the next `gantry up` finds them",
         put<&Down::leave>),
    flag("remove", "Remove the directory as well: keys, queue, accounting", put<&Down::remove>),
    takes("state", "DIR", "Where the cluster is kept", put<&Down::directory>),
};

Result<std::size_t> count_jobs(Session& session) {
  ASSIGN(ping, session.call<proto::PingReply>(proto::Ping{}));
  return ping->jobs_queued + ping->jobs_active;
}

// Cancels all jobs and waits until they have ended. Refused if the user did not say what to do with
// them.
Result<void> settle_jobs(const LocalCluster& cluster, const Down& down) {
  ASSIGN(client, cluster.client());
  auto session = Session::open("gantry", *client);
  if (!session) return {};  // the controller is already gone
  ASSIGN(jobs, count_jobs(*session));
  if (*jobs == 0) return {};
  if (!down.cancel)
    return fail(
        ErrorCode::wrong_state,
        fmt::format("{} not over yet: --cancel ends, --leave keeps them", counted(*jobs, "job")));
  proto::CancelJobs cancel;
  cancel.filter.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  ASSIGN(done, session->call<proto::JobsDone>(cancel));
  Progress progress;
  const Instant deadline = system_now() + kCancelTimeout;
  while (*jobs > 0 && system_now() < deadline) {
    progress.say(fmt::format("waiting for {} to end", counted(*jobs, "job")));
    pause();
    jobs = count_jobs(*session);
    if (!jobs) return tl::unexpected(jobs.error());
  }
  progress.end();
  if (*jobs > 0)
    return fail(ErrorCode::timed_out,
                fmt::format("{} did not end; nothing was stopped", counted(*jobs, "job")));
  return {};
}

Result<int> run_down(const Invocation& in) {
  Down down;
  OPERANDS(operands, in, &down, 0, 0);
  if (down.cancel && down.leave)
    return fail(ErrorCode::usage, "--cancel and --leave exclude each other");
  if (down.leave && down.remove)
    return fail(ErrorCode::usage, "--leave and --remove exclude each other");
  ASSIGN(cluster, cluster_in(down.directory));
  ASSIGN(config, cluster->config());
  ASSIGN(daemons, cluster->daemons(*config));
  const bool answers = running_pid(daemons->front()).has_value();
  if (answers && !down.leave) TRY(settle_jobs(*cluster, down));
  std::size_t stopped = 0;
  for (auto daemon = daemons->rbegin(); daemon != daemons->rend(); ++daemon) {
    stopped += running_pid(*daemon) ? 1 : 0;
    TRY(stop_daemon(*daemon, kStopTimeout));
  }
  if (down.remove) TRY(cluster->remove());
  fmt::print("Cluster {} is down: {} daemons stopped{}.\n", config->cluster, stopped,
             down.remove ? fmt::format(", {} removed", cluster->directory()) : "");
  return 0;
}

// ---- status
struct StatusQuery {
  std::string directory;
};
constexpr Option kStatusOptions[] = {
    takes("state", "DIR", "Where the cluster is kept", put<&StatusQuery::directory>),
};

Result<int> run_status(const Invocation& in) {
  StatusQuery query;
  OPERANDS(operands, in, &query, 0, 0);
  ASSIGN(cluster, cluster_in(query.directory));
  ASSIGN(config, cluster->config());
  ASSIGN(daemons, cluster->daemons(*config));
  std::map<std::string, std::string> states;
  const auto client = cluster->client();
  if (client && running_pid(daemons->front())) {
    if (auto session = Session::open("gantry", *client)) {
      if (const auto nodes = session->call<proto::ListNodesReply>(proto::ListNodes{}))
        for (const proto::NodeRow& node : nodes->nodes)
          states[node.name] = fmt::format("{}, {}", node_state(node), counted(node.jobs, "job"));
      if (const auto ping = session->call<proto::PingReply>(proto::Ping{}))
        states["ctld"] =
            fmt::format("jobs: {} waiting, {} running", ping->jobs_queued, ping->jobs_active);
    } else {
      states["ctld"] = session.error().message;
    }
  }
  fmt::print("cluster {} in {}\n", config->cluster, cluster->directory());
  bool all = true;
  for (const Daemon& daemon : *daemons) {
    const auto pid = running_pid(daemon);
    all = all && pid.has_value();
    const std::string state =
        states.contains(daemon.name) ? states[daemon.name] : why_stopped(daemon);
    fmt::print("  {:<8} {:<16} {}\n", daemon.name,
               pid ? fmt::format("running {}", *pid) : "stopped", state);
  }
  return all ? 0 : 1;
}

}  // namespace

const Command kDown{{"down", "Stop the cluster that `gantry up` started"},
                    {.options = kDownOptions,
                     .examples = {{"gantry down --cancel", "Cancel all jobs and stop it"},
                                  {"gantry down --leave", "Stop it, and let running jobs go on"},
                                  {"gantry down --cancel --remove", "And remove its directory"}},
                     .run = run_down}};
const Command kStatus{{"status", "Show the daemons of that cluster"},
                      {.options = kStatusOptions,
                       .examples = {{"gantry status", "Which daemons run"}},
                       .exits = {{"0", "every daemon runs"}, {"1", "not every one does"}},
                       .run = run_status}};

}  // namespace gantry::cli::gantry_down
