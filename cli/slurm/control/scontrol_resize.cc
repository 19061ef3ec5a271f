// The scripts that scontrol leaves when a running job has become smaller: the variables that the
// job's shell has tell its size as it was.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>

#include "cli/files.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "common/proto/job_query.h"

namespace gantry::cli::slurm {
namespace {

// {4, 4, 2} is "4(x2),2".
std::string in_groups(const std::vector<std::size_t>& counts) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    out.push_back(end - i > 1 ? fmt::format("{}(x{})", counts[i], end - i)
                              : fmt::format("{}", counts[i]));
    i = end;
  }
  return fmt::format("{}", fmt::join(out, ","));
}

struct Scripts {
  std::string sh, csh;
  void set(const char* name, const std::string& value) {
    if (std::getenv(name) == nullptr) return;
    sh += fmt::format("export {}=\"{}\"\n", name, value);
    csh += fmt::format("setenv {} \"{}\"\n", name, value);
  }
  void unset(const char* name) {
    sh += fmt::format("unset {}\n", name);
    csh += fmt::format("unsetenv {}\n", name);
  }
};

}  // namespace

void write_resize_scripts(const Control& c, const proto::JobRef& job) {
  if (std::getenv("SLURM_JOB_ID") == nullptr && std::getenv("SLURM_JOBID") == nullptr) return;
  const auto shown = ask<proto::ShowJobReply>(c.program, proto::ShowJob{job, false});
  if (!shown || shown->jobs.empty() || shown->jobs[0].row.phase != Phase::running) return;
  const proto::JobDetail& detail = shown->jobs[0];
  std::vector<std::size_t> cpus;
  for (const NodePlacement& node : detail.placement) cpus.push_back(node.cpus.size());
  Scripts scripts;
  const std::string nodes = fmt::format("{}", cpus.size());
  scripts.set("SLURM_NODELIST", detail.row.node_list);
  scripts.set("SLURM_JOB_NODELIST", detail.row.node_list);
  scripts.set("SLURM_NNODES", nodes);
  scripts.set("SLURM_JOB_NUM_NODES", nodes);
  scripts.set("SLURM_JOB_CPUS_PER_NODE", in_groups(cpus));
  for (const char* name : {"SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"})
    scripts.unset(name);
  const std::string stem = fmt::format("slurm_job_{}_resize", detail.row.job.value());
  for (const auto& [file, text] :
       {std::pair(stem + ".sh", scripts.sh), std::pair(stem + ".csh", scripts.csh)})
    if (const auto written = write_file(file, text, 0700); !written) {
      fmt::print(stderr, "Could not create file {}: {}\n", file, written.error().message);
      return;
    }
  fmt::print(
      "To reset Slurm environment variables, execute\n  For bash or sh shells:  . ./{0}.sh\n"
      "  For csh shells:         source ./{0}.csh\n",
      stem);
}

}  // namespace gantry::cli::slurm
