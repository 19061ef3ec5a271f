// scontrol show slurmd: shows a node daemon as the controller knows it.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "cli/client_config.h"
#include "cli/cluster/daemons.h"
#include "cli/columns/job_words.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_fields.h"
#include "common/proto/cluster.h"
#include "common/proto/job_query.h"
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

// scontrol reconfigure and token: requests that concern the controller itself.
int control_reconfigure(const Control& c, const Arguments& args) {
  if (!args.empty()) return refused("too many arguments for keyword:reconfigure\n");
  const auto done = reconfigure(c.program);
  return done ? 0 : control_error("slurm_reconfigure error", done.error());
}

int control_token(const Control& c, const Arguments& args) {
  proto::MakeToken message;
  for (const std::string& arg : args) {
    const KeyValue pair = key_value(arg);
    if (pair.key == "username") {
      message.user = pair.value;
    } else if (pair.key == "lifespan") {
      const auto lifetime = parse_integer("lifespan", pair.value, 1, UINT32_MAX);
      if (!lifetime)
        return refused("scontrol: error: lifespan={}: {}\n", pair.value, lifetime.error().message);
      message.lifetime = seconds(*lifetime);
    } else {
      return refused("scontrol: error: {}: token takes username=NAME and lifespan=SECONDS\n", arg);
    }
  }
  const auto made = ask<proto::TokenMade>(c.program, message);
  if (!made) return control_error("scontrol: error: slurm_fetch_token", made.error());
  fmt::print("SLURM_JWT={}\n", made->token);
  return 0;
}

// scontrol listpids and pidinfo: find the processes of jobs on this machine by their cgroups.
namespace {

namespace fs = std::filesystem;

struct JobProcess {
  std::int64_t pid = 0;
  std::string node;
  JobId job{};
  std::string step;  // "0", "batch"
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The part of a path like ".../NODE/job_7.1/step_0/..." between `before` and the next slash.
std::string_view behind(std::string_view path, std::string_view before) {
  const std::size_t at = path.find(before);
  if (at == std::string_view::npos) return {};
  path.remove_prefix(at + before.size());
  return path.substr(0, path.find('/'));
}

// Inside a job's container, all visible processes belong to that job.
std::optional<JobId> job_around_us() {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (!is_inside_job() || job == nullptr) return std::nullopt;
  const auto id = parse_integer("job", job, 1, INT64_MAX);
  return id ? std::optional(JobId(static_cast<std::uint64_t>(*id))) : std::nullopt;
}

// The job that a process belongs to. `cgroups` has a line for every hierarchy, and only some of the
// lines contain the step. Inside a container the paths begin with the job's own directory.
std::optional<JobProcess> process_of(std::int64_t pid, const std::string& cgroups) {
  JobProcess out{pid, "", {}, "batch"};
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view path = std::string_view(line).substr(line.rfind(':') + 1);
    if (const std::string_view step = behind(path, "/step_"); !step.empty()) out.step = step;
    const std::string_view job = behind(path, "/job_");
    const auto id = parse_integer("job", job.substr(0, job.find('.')), 1, INT64_MAX);
    if (job.find('.') == std::string_view::npos || !id) continue;
    out.job = JobId(static_cast<std::uint64_t>(*id));
    const std::string_view above = path.substr(0, path.find("/job_"));
    out.node = above.substr(above.rfind('/') + 1);
  }
  if (out.job.value() != 0) return out;
  const auto around = job_around_us();
  if (!around) return std::nullopt;
  out.job = *around;
  const char* node = std::getenv("SLURMD_NODENAME");
  out.node = node == nullptr ? "" : node;
  return out;
}

std::vector<JobProcess> processes() {
  std::vector<JobProcess> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto pid = parse_integer("pid", entry.path().filename().string(), 1, INT32_MAX);
    if (!pid) continue;
    if (auto one = process_of(*pid, text_of(entry.path() / "cgroup")))
      out.push_back(std::move(*one));
  }
  std::sort(out.begin(), out.end(), [](const JobProcess& a, const JobProcess& b) {
    return std::tuple(a.job, a.step, a.pid) < std::tuple(b.job, b.step, b.pid);
  });
  return out;
}

// An environment variable of the process; "-" if the process is no task, or may not be read.
std::string variable_of(std::int64_t pid, std::string_view name) {
  const std::string all = text_of(fmt::format("/proc/{}/environ", pid));
  const std::string wanted = fmt::format("{}=", name);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    const std::string_view entry = std::string_view(all).substr(at, end - at);
    if (entry.starts_with(wanted)) return std::string(entry.substr(wanted.size()));
    at = end + 1;
  }
  return "-";
}

// The time as Slurm's slurm_ctime2() writes it.
std::string long_time(Instant t) {
  const std::time_t seconds = static_cast<std::time_t>(t.us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts)};
}

}  // namespace

int control_listpids(const Control& c, const Arguments& args) {
  std::string job = args.empty() ? "*" : args[0];
  const std::string node = args.size() > 1 ? args[1] : "";
  std::string step;
  if (const std::size_t dot = job.find('.'); dot != std::string::npos) {
    step = job.substr(dot + 1);
    job.resize(dot);
  }
  const auto id = parse_integer("job", job, 1, INT64_MAX);
  if (!id && job != "*") return refused("scontrol: error: Invalid job id {}\n", args[0]);
  std::vector<JobProcess> found = processes();
  std::erase_if(found, [&](const JobProcess& p) {
    return (id && p.job.value() != static_cast<std::uint64_t>(*id)) ||
           (!step.empty() && p.step != step) || (!node.empty() && p.node != node);
  });
  if (found.empty() && !c.quiet) {
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    const std::string here = node.empty() ? host.data() : node;
    if (!id)
      fmt::print(stderr, "No job steps exist on this node.\n");
    else if (step.empty())
      fmt::print(stderr, "JobId={} does not exist on node {}.\n", *id, here);
    else
      fmt::print(stderr, "StepId={}.{} does not exist on node {}.\n", *id, step, here);
  }
  fmt::print("{:<8} {:<8} {:<8} {:<7} {:<8}\n", "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID");
  for (const JobProcess& p : found)
    fmt::print("{:<8} {:<8} {:<8} {:<7} {:<8}\n", p.pid, p.job.value(), p.step,
               variable_of(p.pid, "SLURM_LOCALID"), variable_of(p.pid, "SLURM_PROCID"));
  return found.empty() ? 1 : 0;
}

int control_pidinfo(const Control& c, const Arguments& args) {
  if (!has_arguments(args, "pidinfo")) return 1;
  const auto pid = parse_integer("pid", args[0], 1, INT32_MAX);
  const auto process =
      pid ? process_of(*pid, text_of(fmt::format("/proc/{}/cgroup", *pid))) : std::nullopt;
  if (!process) {
    if (!c.quiet) fmt::print(stderr, "Failed to locate job for requested pid\n");
    return 1;
  }
  const auto shown = ask<proto::ShowJobReply>(c.program, proto::ShowJob{{process->job, {}}, false});
  if (!shown) return control_error("slurm_get_end_time error", shown.error());
  const auto end = shown->jobs.empty() ? std::nullopt : expected_end(shown->jobs.front().row);
  fmt::print("Slurm JobId={} ends at {}\n", process->job.value(),
             end ? long_time(*end) : std::string("Unknown"));
  if (end)
    fmt::print("Job remaining time is {} seconds\n",
               std::max<std::int64_t>(0, (*end - shown->now).seconds()));
  return 0;
}

}  // namespace gantry::cli::slurm
