// The keys of scontrol update JobId=.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>

#include "cli/files.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Reads a new time limit; "+30" and "-30" change the job's present limit.
Result<Duration> new_time_limit(const Control& c, const proto::JobRef& job,
                                const std::string& text) {
  const bool relative = text.starts_with('+') || text.starts_with('-');
  ASSIGN(limit, parse_duration(relative ? std::string_view(text).substr(1) : text));
  if (!*limit) return fail(ErrorCode::invalid_argument, "a limit cannot become UNLIMITED");
  if (!relative) return **limit;
  ASSIGN(shown, ask<proto::ShowJobReply>(c.program, proto::ShowJob{job, false}));
  if (shown->jobs.empty() || !shown->jobs[0].row.time_limit)
    return fail(ErrorCode::invalid_argument, "the job has no limit to change");
  const Duration now = *shown->jobs[0].row.time_limit;
  return text[0] == '+' ? now + **limit : now - **limit;
}

template <class Number>
Result<void> put_integer(std::optional<Number>& out, const KeyValue& pair, std::int64_t low,
                         std::int64_t high) {
  ASSIGN(n, parse_integer(pair.key, pair.value, low, high));
  out = static_cast<Number>(*n);
  return {};
}

Result<void> put_memory(std::optional<std::int64_t>& out, const KeyValue& pair) {
  ASSIGN(bytes, parse_memory(pair.value));
  if (*bytes == 0) return fail(ErrorCode::invalid_argument, "say how much");
  out = *bytes;
  return {};
}

Result<void> put_nodes(std::optional<std::vector<std::string>>& out, const KeyValue& pair) {
  out.emplace();
  if (pair.value.empty()) return {};
  ASSIGN(names, expand_hostlist(pair.value));
  *out = std::move(*names);
  return {};
}

// Reads N or MIN-MAX.
Result<void> put_node_count(proto::Reshape& shape, const KeyValue& pair) {
  const std::size_t dash = pair.value.find('-');
  const std::string low = pair.value.substr(0, dash);
  TRY(put_integer(shape.min_nodes, {pair.key, low}, 1, 65'536));
  return put_integer(shape.max_nodes,
                     {pair.key, dash == std::string::npos ? low : pair.value.substr(dash + 1)},
                     *shape.min_nodes, 65'536);
}

// Sets one of the resources that a waiting job asks for. Returns false if the key is none of them.
Result<bool> set_size_key(proto::UpdateJob& update, const KeyValue& pair) {
  proto::Reshape shape = update.reshape.value_or(proto::Reshape{});
  const std::string& key = pair.key;
  Result<void> done;
  if (key == "numnodes" || key == "reqnodes")
    done = put_node_count(shape, pair);
  else if (key == "numtasks" || key == "reqprocs")
    done = put_integer(shape.tasks, pair, 1, 1'000'000);
  else if (key == "cpuspertask" || key == "reqcpuspertask")
    done = put_integer(shape.cpus_per_task, pair, 1, 65'535);
  else if (key == "minmemorynode")
    done = put_memory(shape.memory_per_node, pair);
  else if (key == "minmemorycpu")
    done = put_memory(shape.memory_per_cpu, pair);
  else if (key == "features")
    shape.constraint = pair.value;
  else if (key == "reqnodelist" || key == "nodelist")
    done = put_nodes(shape.required_nodes, pair);
  else if (key == "excnodelist")
    done = put_nodes(shape.excluded_nodes, pair);
  else
    return false;
  if (!done) return tl::unexpected(done.error());
  update.reshape = std::move(shape);
  return true;
}

}  // namespace

Result<bool> set_job_key(const Control& c, proto::UpdateJob& update, const KeyValue& pair) {
  Result<void> done;
  const std::string& key = pair.key;
  if (key == "timelimit" || key == "time") {
    ASSIGN(limit, new_time_limit(c, update.job, pair.value));
    update.time_limit = *limit;
  } else if (key == "nice") {
    done =
        put_integer(update.nice, {key, pair.value.empty() ? "100" : pair.value}, -10'000, 10'000);
  } else if (key == "priority") {
    done = put_integer(update.priority, pair, 0, UINT32_MAX);
  } else if (key == "sitefactor") {
    constexpr std::int64_t kMostSiteFactor = 2'147'483'645;
    const auto n = parse_integer("SiteFactor", pair.value, -kMostSiteFactor, kMostSiteFactor);
    if (!n)
      return fail(ErrorCode::invalid_argument, "scontrol: error: SiteFactor value out of range");
    update.site_factor = static_cast<std::int32_t>(*n);
  } else if (key == "arraytaskthrottle") {
    done = put_integer(update.array_max_running, pair, 0, 1'000'000);  // 0 = no limit
  } else if (key == "partition") {
    update.partition = pair.value;
  } else if (key == "account") {
    update.account = pair.value;
  } else if (key == "reservation" || key == "reservationname") {
    update.reservation = pair.value;
  } else if (key == "jobname" || key == "name") {
    update.name = pair.value;
  } else if (key == "requeue") {
    if (pair.value != "0" && pair.value != "1")
      return fail(ErrorCode::invalid_argument, "requeue is 0 or 1");
    update.requeue = pair.value == "1";
  } else if (key == "comment") {
    update.comment = pair.value;
  } else if (key == "starttime" || key == "eligibletime" || key == "begin") {
    ASSIGN(t, parse_time(pair.value, system_now()));
    update.begin = *t;
  } else {
    const auto size = set_size_key(update, pair);
    if (!size || !*size) return size;
  }
  if (!done) return tl::unexpected(done.error());
  return true;
}

// The scripts that scontrol writes when a running job has become smaller, because variables of the
// job's shell still have the old size.
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
