#include "cli/slurm/step/srun_parts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "cli/slurm/frame.h"
#include "cli/step/step_run.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Options for srun itself and not for its tasks. If there are several parts, only the first one may
// have them.
constexpr std::string_view kOfSrun[] = {"clusters", "input",     "jobid",      "kill-on-bad-exit",
                                        "label",    "mpi",       "multi-prog", "pty",
                                        "quiet",    "test-only", "unbuffered", "wait"};

bool is_of_srun(const Given& given) {
  return std::find(std::begin(kOfSrun), std::end(kOfSrun), given.option->name) != std::end(kOfSrun);
}

std::optional<std::string> group_text(const Parsed& part) {
  std::optional<std::string> text;
  for (const Given& given : part.given)
    if (given.option->name == "het-group") text = given.value;
  return text;
}

}  // namespace

namespace srun {
Result<void> set_het_group(SrunRequest& r, std::string_view text) {
  const auto ranges = parse_index_ranges(text);
  if (!ranges || ranges->max_running)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\": components are 0, 0,2 or 0-2", text));
  r.groups.clear();
  for (const IndexRange& range : ranges->ranges)
    for (std::uint32_t i = range.first; i <= range.last && i < kMaxHetParts; i += range.step)
      r.groups.push_back(i);
  if (!r.groups.empty() && ranges->ranges.back().last < kMaxHetParts) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\": components are 0 to {}", text, kMaxHetParts - 1));
}
}  // namespace srun

std::optional<std::vector<Parsed>> parse_parts(const Invocation& call, int& status) {
  std::vector<Parsed> parts;
  std::vector<std::string> args = call.args();
  for (;;) {
    auto parsed = parse(Invocation(call.program(), call.command(), args), status);
    if (!parsed) return std::nullopt;
    auto& operands = parsed->operands;
    const auto colon = std::find(operands.begin(), operands.end(), ":");
    const bool more = colon != operands.end();
    if (more) args.assign(colon + 1, operands.end());
    operands.erase(colon, operands.end());
    parts.push_back(std::move(*parsed));
    if (!more) return parts;
  }
}

std::optional<Groups> groups_of(const Invocation& call, const std::vector<Parsed>& parts,
                                bool inside) {
  const auto refuse = [&](const std::string& text) {
    complain(call, text);
    return std::nullopt;
  };
  Groups out;
  std::set<std::uint32_t> named;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& given = parts[i].given;
    if (const auto odd = std::find_if(given.begin(), given.end(), is_of_srun);
        i > 0 && odd != given.end())
      return refuse(fmt::format("{} is for the first component: it concerns srun itself",
                                shown_name(*odd->option)));
    const auto text = group_text(parts[i]);
    SrunRequest said;
    if (text)
      if (auto done = srun::set_het_group(said, *text); !done)
        return refuse("Invalid --het-group specification: " + done.error().message);
    // Outside of a job the option has no effect on a single part, as in Slurm; with several parts,
    // each becomes the component of the same index.
    const std::vector<std::uint32_t> own{static_cast<std::uint32_t>(i)};
    if (text && !inside && parts.size() == 1) said.groups.clear();
    if (text && !inside && parts.size() > 1 && said.groups != own)
      return refuse("--het-group names components of a job, and this is not within one");
    if (!text && parts.size() > 1) said.groups.push_back(static_cast<std::uint32_t>(i));
    auto& groups = out.emplace_back(said.groups.begin(), said.groups.end());
    for (const std::uint32_t group : said.groups)
      if (!named.insert(group).second)
        return refuse("fatal: Duplicate het groups in single srun not supported");
    if (groups.empty()) groups.emplace_back();
  }
  return out;
}

std::string behind_names(std::optional<std::uint32_t> group) {
  if (!group || (*group == 0 && !number_of_env("SLURM_HET_SIZE"))) return {};
  return fmt::format("_HET_GROUP_{}", *group);
}

std::map<std::string, std::string> nodes_of_components(
    const std::vector<std::optional<std::uint32_t>>& groups) {
  std::vector<std::string> names, cpus;
  for (const auto& group : groups) {
    const std::string behind = behind_names(group);
    if (behind.empty()) return {};
    const char* list = std::getenv(("SLURM_JOB_NODELIST" + behind).c_str());
    const char* counts = std::getenv(("SLURM_JOB_CPUS_PER_NODE" + behind).c_str());
    const auto nodes = expand_hostlist(list == nullptr ? "" : list);
    if (!nodes || counts == nullptr) return {};
    names.insert(names.end(), nodes->begin(), nodes->end());
    cpus.emplace_back(counts);
  }
  std::map<std::string, std::string> out;
  for (const std::string prefix : {"SLURM_", "GANTRY_"}) {
    out[prefix + "JOB_NODELIST"] = out[prefix + "NODELIST"] = compress_hostlist(names);
    out[prefix + "JOB_NUM_NODES"] = std::to_string(names.size());
    out[prefix + "JOB_CPUS_PER_NODE"] = fmt::format("{}", fmt::join(cpus, ","));
  }
  return out;
}

Result<std::vector<JobId>> jobs_of(const std::vector<std::optional<std::uint32_t>>& groups,
                                   JobId job, Session& session) {
  if (groups.size() == 1 && !groups.front()) return std::vector<JobId>{job};
  ASSIGN(shown, session.call<proto::ShowJobReply>(proto::ShowJob{{job, {}}, false}));
  HetPart parts{job, 0, 1};  // only the job, unless it is a leader of components
  for (const proto::JobDetail& detail : shown->jobs)
    if (detail.row.het && detail.row.het->leader == job) parts = *detail.row.het;
  std::vector<JobId> out;
  for (const auto& group : groups) {
    if (*group >= parts.size)
      return fail(ErrorCode::usage,
                  fmt::format("Attempt to run a job step with het group value of {}, but the job "
                              "allocation has maximum value of {}",
                              *group, parts.size - 1));
    out.push_back(parts.member(*group));
  }
  return out;
}

void say_job(const Invocation& call, JobId job) {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  const char* cpus = std::getenv("SLURM_JOB_CPUS_PER_NODE");
  const auto nodes = expand_hostlist(list == nullptr ? "" : list);
  if (number_of_env("SLURM_JOB_ID") != job.value() || !nodes || cpus == nullptr) return;
  std::string counts;
  for (const std::string& count : split_list(cpus))
    counts += (counts.empty() ? "" : ",") + count + (count.back() == ')' ? "" : "(x1)");
  fmt::print(stderr, "{}: jobid {}: nodes({}):`{}', cpu counts: {}\n", call.program(), job.value(),
             nodes->size(), list, counts);
}

}  // namespace gantry::cli::slurm
