// gctl maintenance: nodes are taken out of service one batch at a time, worked on, checked, and put
// back.
//
// The controller knows nothing of this except drained nodes with a reason. The command may
// therefore be stopped at any time: the nodes that it had taken out of service then stay drained,
// and it prints their names.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "common/proto/cluster.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/tenancy.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_maintenance {
namespace {

constexpr timespec kPause{2, 0};  // pause between two checks of nodes that become idle

struct Maintain {
  std::vector<std::string> partitions, pools;
  std::string run, check, reason = "maintenance";
  std::size_t batch = 0;  // nodes in a batch; 0 = by `percent`
  std::size_t percent = 10;
  std::optional<Duration> wait;
  bool requeue = false;
};

Result<void> set_batch(Maintain& m, std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  ASSIGN(n, parse_integer("the batch", text, 1, percent ? 100 : 1'000'000));
  (percent ? m.percent : m.batch) = static_cast<std::size_t>(*n);
  if (percent) m.batch = 0;
  return {};
}
constexpr Option kOptions[] = {
    takes("batch", 'b', "N|N%", "So many nodes at a time (default 10%, at least one)",
          call<set_batch>),
    takes("check", 'c', "COMMAND", "Says with its exit status whether a node is well again",
          put<&Maintain::check>),
    takes("partition", 'p', "NAME,...", "Nodes of these partitions",
          parsed<split_list, &Maintain::partitions>),
    takes("pool", 'P', "NAME,...", "Nodes of these pools (documents of the kind NodePool)",
          put<&Maintain::pools>),
    takes("reason", 'r', "TEXT", "Shown by ginfo -R meanwhile (default: maintenance)",
          put<&Maintain::reason>),
    flag("requeue", "Requeue the jobs there instead of waiting for their end",
         put<&Maintain::requeue>),
    takes("run", 'x', "COMMAND", "What is to be done for a node, as soon as nothing runs there",
          put<&Maintain::run>),
    takes("wait", 'w', "TIME", "Give up on a batch whose jobs take longer: minutes, or H:M:S",
          parsed<parse_duration, &Maintain::wait>),
};

bool listed(const std::vector<std::string>& list, const std::string& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// The names of the pools' nodes, in the order in which the pools are named.
Result<std::vector<std::string>> nodes_of_pools(Session& session,
                                                const std::vector<std::string>& pools) {
  proto::GetTenancy get;
  get.kinds = {std::string(tenancy::NodePool::kName)};
  ASSIGN(present, session.call<proto::TenancyDocuments>(get));
  ASSIGN(nodes, session.call<proto::ListNodesReply>(proto::ListNodes{}));
  std::vector<std::string> names;
  for (const std::string& name : pools) {
    const tenancy::NodePool* pool = nullptr;
    for (const tenancy::Document& document : present->documents)
      if (const auto* one = std::get_if<tenancy::NodePool>(&document); one && one->name == name)
        pool = one;
    if (pool == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no node pool \"{}\"", name));
    std::vector<std::string> hosts;
    if (!pool->nodes.empty()) {
      ASSIGN(expanded, expand_hostlist(pool->nodes));
      hosts = std::move(*expanded);
    }
    bool any = false;
    for (const proto::NodeRow& node : nodes->nodes) {
      const bool of_it = (hosts.empty() || listed(hosts, node.name)) &&
                         std::all_of(pool->features.begin(), pool->features.end(),
                                     [&](const auto& f) { return listed(node.features, f); });
      any |= of_it;
      if (of_it && !listed(names, node.name)) names.push_back(node.name);
    }
    if (!any) return fail(ErrorCode::not_found, fmt::format("node pool {} has no nodes", name));
  }
  return names;
}

class Rounds {
 public:
  Rounds(const Maintain& m, Session& session) : m_(m), session_(session) {}

  // Handles all nodes. Returns false if the command stopped early, after reporting why.
  Result<bool> all(std::vector<std::string> names) {
    ASSIGN(nodes, session_.call<proto::ListNodesReply>(
                      proto::ListNodes{std::move(names), m_.partitions, false}));
    std::vector<std::string> left;
    for (const proto::NodeRow& node : nodes->nodes) {
      if (node.intent == NodeIntent::open && node.health == NodeHealth::up)
        left.push_back(node.name);
      else
        fmt::print("{}: left out: it is out of service already\n", node.name);
    }
    if (left.empty()) return fail(ErrorCode::not_found, "no node in service is among them");
    const std::size_t by_percent = std::max<std::size_t>(1, left.size() * m_.percent / 100);
    const std::size_t size = m_.batch > 0 ? m_.batch : by_percent;
    for (std::size_t at = 0; at < left.size(); at += size) {
      const std::vector<std::string> batch(
          left.begin() + static_cast<std::ptrdiff_t>(at),
          left.begin() + static_cast<std::ptrdiff_t>(std::min(at + size, left.size())));
      auto good = one(batch);
      if (!good || !*good) return good;
    }
    return true;
  }

 private:
  Result<void> change(const std::vector<std::string>& nodes, proto::NodeAction action,
                      const std::string& reason) {
    if (nodes.empty()) return {};
    ASSIGN(done, session_.call<proto::Ok>(proto::UpdateNodes{nodes, action, reason}));
    return {};
  }

  Result<bool> one(const std::vector<std::string>& batch) {
    const std::string list = compress_hostlist(batch);
    TRY(change(batch, proto::NodeAction::drain, m_.reason));
    fmt::print("{}: drained\n", list);
    std::fflush(stdout);
    ASSIGN(idle, wait_for_idle(batch));
    if (!*idle) {
      fmt::print("{}: still in use: stopped, and put back into service\n", list);
      TRY(change(batch, proto::NodeAction::resume, {}));
      return false;
    }
    std::vector<std::string> well = batch;
    std::vector<std::string> unwell;
    for (const std::string* command : {&m_.run, &m_.check})
      if (!command->empty()) run(*command, well, unwell);
    TRY(change(well, proto::NodeAction::resume, {}));
    if (!well.empty()) fmt::print("{}: back in service\n", compress_hostlist(well));
    if (unwell.empty()) return true;
    TRY(change(unwell, proto::NodeAction::drain, m_.reason + ": failed"));
    fmt::print("{}: failed: stopped; these stay out of service\n", compress_hostlist(unwell));
    return false;
  }

  Result<bool> wait_for_idle(const std::vector<std::string>& batch) {
    const Instant since = system_now();
    bool asked = false;
    std::vector<std::string> told;
    for (;;) {
      ASSIGN(nodes, session_.call<proto::ListNodesReply>(proto::ListNodes{batch, {}, false}));
      std::vector<std::string> busy;
      for (const proto::NodeRow& node : nodes->nodes)
        if (node.jobs > 0) busy.push_back(node.name);
      if (busy.empty()) return true;
      if (busy != told) {
        fmt::print("{}: waits for the jobs there\n", compress_hostlist(busy));
        std::fflush(stdout);
        told = std::move(busy);
      }
      if (m_.wait && system_now() - since > *m_.wait) return false;
      if (m_.requeue && !std::exchange(asked, true)) TRY(requeue(batch));
      ::nanosleep(&kPause, nullptr);
    }
  }

  // Requeues the jobs on these nodes. Jobs that may not be requeued run to their end.
  Result<void> requeue(const std::vector<std::string>& batch) {
    proto::ListJobs list;
    list.filter.nodes = batch;
    proto::RequeueJobs again;
    for (;;) {
      ASSIGN(jobs, session_.call<proto::ListJobsReply>(list));
      for (const proto::JobRow& row : jobs->rows)
        if (row.phase == Phase::running || row.phase == Phase::starting ||
            row.phase == Phase::suspended)
          again.jobs.push_back({row.job, {}});
      if (!jobs->more) break;
      list.after = jobs->next;
    }
    if (again.jobs.empty()) return {};
    ASSIGN(done, session_.call<proto::JobsDone>(again));
    for (const auto& refused : done->refused)
      fmt::print("job {} runs to its end: {}\n", refused.job.job.value(), refused.error.message);
    return {};
  }

  // Runs a command for all nodes at once. Nodes for which it fails move from `well` to `unwell`.
  static void run(const std::string& command, std::vector<std::string>& well,
                  std::vector<std::string>& unwell) {
    std::vector<pid_t> pids;
    for (const std::string& node : well) pids.push_back(start(command, node));
    std::vector<std::string> good;
    for (std::size_t i = 0; i < well.size(); ++i) {
      int status = -1;
      if (pids[i] > 0) ::waitpid(pids[i], &status, 0);
      const bool done = pids[i] > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
      (done ? good : unwell).push_back(well[i]);
    }
    well = std::move(good);
  }

  static pid_t start(const std::string& command, const std::string& node) {
    std::string name = "sh", flag = "-c", text = command, own = "GANTRY_NODE=" + node;
    std::vector<char*> argv{name.data(), flag.data(), text.data(), nullptr};
    std::vector<char*> env{own.data()};
    for (char** one = environ; *one != nullptr; ++one)
      if (!std::string_view(*one).starts_with("GANTRY_NODE=")) env.push_back(*one);
    env.push_back(nullptr);
    pid_t pid = 0;
    return ::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, argv.data(), env.data()) == 0 ? pid
                                                                                          : -1;
  }

  const Maintain& m_;
  Session& session_;
};

Result<int> run_start(const Invocation& in) {
  Maintain m;
  OPERANDS(operands, in, &m, 0, 1);
  if (m.run.empty() && m.check.empty())
    return fail(ErrorCode::usage, "say what is to be done: --run, --check or both");
  std::vector<std::string> names;
  if (!(*operands)->empty()) {
    ASSIGN(expanded, expand_hostlist((*operands)->front()));
    names = std::move(*expanded);
  }
  const int said =
      (names.empty() ? 0 : 1) + (m.partitions.empty() ? 0 : 1) + (m.pools.empty() ? 0 : 1);
  if (said != 1)
    return fail(ErrorCode::usage,
                "name nodes, or pools with --pool, or partitions with -p: one of the three");
  ASSIGN(session, Session::open(in.program()));
  if (!m.pools.empty()) {
    ASSIGN(of_pools, nodes_of_pools(*session, m.pools));
    names = std::move(*of_pools);
  }
  ASSIGN(good, Rounds(m, *session).all(std::move(names)));
  return *good ? 0 : 1;
}

const Command kStart{
    {"start", "Work on nodes a batch at a time, while the others run jobs", "[NODES]"},
    {.description =
         "Each batch is drained; when nothing runs there any more, the commands are run "
         "on this machine, for all its nodes at once, with the node's name in "
         "GANTRY_NODE. What went well is put back into service before the next batch; "
         "what did not stays drained, and it stops. Nodes that are out of service "
         "already are left alone.\n\n"
         "It runs until all is done: ended before that it leaves its batch drained, with the "
         "reason (`ginfo -R`), and begins with the others when it is started again.",
     .options = kOptions,
     .examples = {{"gctl maintenance start --pool a --batch 10% --run 'ssh $GANTRY_NODE upgrade'",
                   "All nodes of a pool, a tenth of them at a time"},
                  {"gctl maintenance start 'n[1-8]' --requeue --check 'test-fabric $GANTRY_NODE'",
                   "One after the other, without waiting for jobs"}},
     .exits = {{"0", "all nodes are done"},
               {"1", "it has stopped: a command failed, or a batch stayed in use"},
               {"2", "the command line is wrong"}},
     .run = run_start}};
constexpr const Command* kSub[] = {&kStart};

}  // namespace

const Command kGctlMaintenance{
    {"maintenance", "Work on nodes a batch at a time"},
    {.examples = {{"gctl maintenance start --pool a --batch 10% --run 'ssh $GANTRY_NODE upgrade'",
                   "All nodes of a pool, a tenth of them at a time"},
                  {"gctl maintenance start 'n[1-8]' --requeue --check 'test-fabric $GANTRY_NODE'",
                   "One after the other, without waiting for jobs"}},
     .sub = kSub}};

}  // namespace gantry::cli::gctl_maintenance
