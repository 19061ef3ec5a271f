// scontrol show slurmd: shows a node daemon as the controller knows it.
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "cli/columns/job_words.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "cli/slurm/records/history.h"
#include "common/proto/cluster.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// The name of this node. A job on it has the name in a variable; elsewhere it is the host's name.
std::string this_node() {
  if (const char* name = std::getenv("SLURMD_NODENAME"); name != nullptr && *name != 0) return name;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  const std::string name = host.data();
  return name.substr(0, name.find('.'));
}

Result<std::string> active_steps(Session& session, const std::string& node) {
  proto::QueryHistory query;
  query.filter.nodes = {node};
  query.filter.states = {"RUNNING", "SUSPENDED", "COMPLETING"};
  query.start = system_now();
  ASSIGN(history, ask_history(session, std::move(query)));
  std::string text;
  for (const proto::HistoryRow& job : history->jobs)
    for (const proto::StepRow& step : job.steps) {
      const auto nodes = expand_hostlist(step.node_list);
      const bool here = nodes && std::find(nodes->begin(), nodes->end(), node) != nodes->end();
      if (!step.running || step.step == "extern" || !here) continue;
      text += (text.empty() ? "" : " ") + shown_id(job.row) + "." + step.step;
    }
  return text.empty() ? "NONE" : text;
}

}  // namespace

int control_show_slurmd(const Control& c, const std::string& word) {
  const std::string name = word.empty() ? this_node() : word;
  auto session = Session::open(c.program);
  if (!session) return control_error("slurm_load_slurmd_status", session.error());
  const auto known = session->call<proto::ListNodesReply>(proto::ListNodes{{}, {}, false});
  if (!known) return control_error("slurm_load_slurmd_status", known.error());
  const auto node = std::find_if(known->nodes.begin(), known->nodes.end(),
                                 [&](const proto::NodeRow& row) { return row.name == name; });
  if (node == known->nodes.end()) {
    fmt::print(stderr, "slurm_load_slurmd_status: Invalid node name specified\n");
    return refused("scontrol: {} is no node of this cluster; name one\n", name);
  }
  if (node->health != NodeHealth::up)
    return refused("slurm_load_slurmd_status: Connection refused\n");
  const auto steps = active_steps(*session, name);
  if (!steps) return control_error("slurm_load_slurmd_status", steps.error());
  const auto line = [](std::string_view key, std::string_view value) {
    fmt::print("{:<24} = {}\n", key, value);
  };
  line("Active Steps", *steps);
  line("Actual CPUs", std::to_string(node->total[Resource::cpu] / kCoreUnit));
  line("Actual Boards", "1");
  line("Actual sockets", std::to_string(node->sockets));
  line("Actual cores", std::to_string(node->cores_per_socket));
  line("Actual threads per core", std::to_string(node->threads_per_core));
  line("Actual real memory", fmt::format("{} MB", node->total[Resource::memory] >> 20));
  line("Actual temp disk space", fmt::format("{} MB", node->total[Resource::scratch] >> 20));
  line("Boot time", shown_time(node->booted, "Unknown"));
  line("Hostname", node->name);
  line("Last slurmctld msg time", shown_time(node->last_seen, "NONE"));
  line("Slurmd PID", "N/A");
  line("Slurmd Debug", "N/A");
  line("Slurmd Logfile", "N/A");
  line("Version", kSlurmVersion.substr(6));
  fmt::print("\n");
  return 0;
}

}  // namespace gantry::cli::slurm
