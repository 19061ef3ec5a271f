// Values of sacct's lines that several fields or commands need.
#include <grp.h>

#include <fmt/core.h>

#include <algorithm>
#include <csignal>

#include "cli/columns/account_values.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/job_fields.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

Duration elapsed_of(const AccountRow& v) {
  const auto begin = v.step != nullptr ? std::optional(v.step->started) : v.job->row.started;
  const auto end = v.step != nullptr ? v.step->ended : v.job->row.ended;
  if (!begin) return {};
  // The batch step runs as long as the job, so the job's suspended time is subtracted. For other
  // steps nobody knows how long they were suspended.
  const bool whole = v.step == nullptr || v.step->step == "batch" || v.step->step == "extern";
  const Duration stopped = whole ? v.job->row.suspended : Duration{};
  return std::max(end.value_or(v.now) - *begin - stopped, Duration{});
}

std::uint32_t cpus_of(const AccountRow& v) {
  return cores_held(*v.job, v.step);
}

std::string_view step_state(const proto::HistoryRow& job, const proto::StepRow& step) {
  if (step.running) return words_of(Phase::running, std::nullopt).state;
  const auto outcome = job.row.outcome;
  const bool ended = outcome == Outcome::cancelled || outcome == Outcome::timeout;
  const bool by_us = step.exit.signal == SIGTERM || step.exit.signal == SIGKILL;
  return words_of(Phase::ended, ended && by_us ? Outcome::cancelled : step.outcome).state;
}

std::string state_with_canceller(const AccountRow& v) {
  if (v.step != nullptr) return std::string(step_state(*v.job, *v.step));
  // Slurm's accounting has neither CONFIGURING nor COMPLETING: a job that has nodes is RUNNING
  // until it ends.
  const Phase phase = v.job->row.phase;
  if (v.job->requeued && v.job->row.outcome == Outcome::cancelled) return "REQUEUED";
  const bool between = phase == Phase::starting || phase == Phase::finishing;
  const std::string_view text =
      between ? words_of(Phase::running, std::nullopt).state : words_of(v.job->row).state;
  return std::string(text) + canceller_of(*v.job);
}

std::uint32_t nodes_of(const AccountRow& v) {
  if (v.step == nullptr) return v.job->row.nodes;
  if (v.step->step == "batch") return 1;
  const auto names = expand_hostlist(v.step->node_list);
  return names && !names->empty() ? static_cast<std::uint32_t>(names->size()) : 1;
}

// The resources are sorted by name, as in Slurm's database.
std::string sorted_tres(const AccountRow& v, std::uint32_t cpus, std::int64_t memory) {
  std::string text =
      v.step == nullptr ? fmt::format("billing={},", v.job->row.billing.value_or(cpus)) : "";
  text += fmt::format("cpu={}", cpus);
  const std::uint32_t gpus = v.step == nullptr ? v.job->row.gpus : v.step->gpus;
  if (gpus > 0) text += fmt::format(",gres/gpu={}", gpus);
  const auto rate = [&](std::string_view name, std::int64_t per_node) {
    if (per_node > 0) text += fmt::format(",{}={}", name, format_rate(per_node * nodes_of(v)));
  };
  rate("io", v.job->row.io_per_node);
  if (memory > 0) text += ",mem=" + format_memory(memory);
  rate("net", v.job->row.net_per_node);
  return text + fmt::format(",node={}", nodes_of(v));
}

// A step counts as having all that the job has on the step's nodes, because it may use all of it.
void put_alloc_tres(std::string& o, const AccountRow& v) {
  if (cpus_of(v) == 0) return;
  const std::int64_t of_node = v.job->alloc_memory / std::max(1u, v.job->row.nodes);
  o += sorted_tres(v, cpus_of(v), v.step == nullptr ? v.job->alloc_memory : of_node * nodes_of(v));
}

// A job that was ended by cancelling or its time limit has no exit code of its own; its steps have
// the signal.
ExitStatus shown_exit(const AccountRow& v) {
  if (v.step != nullptr) return v.step->exit;
  const auto outcome = v.job->row.outcome;
  const bool ended = outcome == Outcome::cancelled || outcome == Outcome::timeout;
  return ended ? ExitStatus{} : v.job->row.exit;
}

void put_node_list(std::string& o, const AccountRow& v) {
  const std::string& list = v.step != nullptr ? v.step->node_list : v.job->row.node_list;
  const bool batch = v.step != nullptr && v.step->step == "batch";
  o += list.empty() ? "None assigned" : batch ? first_node_of(list) : list;
}

void put_req_tres(std::string& o, const AccountRow& v) {
  o += sorted_tres(v, v.job->row.cpus, v.job->row.memory_per_node * v.job->row.nodes);
}

// The group's name if this machine knows it, else its number.
void put_group(std::string& o, const AccountRow& v) {
  if (v.step != nullptr) return;
  const std::string& group = v.job->group;
  const bool number = !group.empty() && group.find_first_not_of("0123456789") == std::string::npos;
  const ::group* known = number ? ::getgrgid(static_cast<gid_t>(std::stoul(group))) : nullptr;
  o += known != nullptr ? known->gr_name : group;
}

void put_gid(std::string& o, const AccountRow& v) {
  std::string name;
  put_group(name, v);
  if (const ::group* known = ::getgrnam(name.c_str())) o += std::to_string(known->gr_gid);
}

}  // namespace gantry::cli::slurm
