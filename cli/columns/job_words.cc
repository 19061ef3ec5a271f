// The tables of public names of states and reasons.
#include "cli/columns/job_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

JobWords ended_words(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed: return {"COMPLETED", "CD"};
    case Outcome::failed: return {"FAILED", "F"};
    case Outcome::cancelled: return {"CANCELLED", "CA"};
    case Outcome::timeout: return {"TIMEOUT", "TO"};
    case Outcome::out_of_memory: return {"OUT_OF_MEMORY", "OOM"};
    case Outcome::node_fail: return {"NODE_FAIL", "NF"};
    case Outcome::launch_failed: return {"BOOT_FAIL", "BF"};
    case Outcome::deadline: return {"DEADLINE", "DL"};
    case Outcome::preempted: return {"PREEMPTED", "PR"};
  }
  return {"UNKNOWN", "?"};
}

constexpr std::string_view kStates[] = {
    "PENDING",   "PD", "RUNNING",       "R",   "SUSPENDED",    "S",  "COMPLETING",   "CG",
    "COMPLETED", "CD", "CONFIGURING",   "CF",  "CANCELLED",    "CA", "FAILED",       "F",
    "TIMEOUT",   "TO", "PREEMPTED",     "PR",  "NODE_FAIL",    "NF", "BOOT_FAIL",    "BF",
    "DEADLINE",  "DL", "OUT_OF_MEMORY", "OOM", "REQUEUED",     "RQ", "RESIZING",     "RS",
    "REVOKED",   "RV", "SIGNALING",     "SI",  "SPECIAL_EXIT", "SE", "STAGE_OUT",    "SO",
    "STOPPED",   "ST", "RESV_DEL_HOLD", "RD",  "REQUEUE_FED",  "RF", "REQUEUE_HOLD", "RH",
    "ALL"};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

JobWords words_of(Phase phase, const std::optional<Outcome>& outcome) {
  switch (phase) {
    case Phase::queued: return {"PENDING", "PD"};
    case Phase::starting: return {"CONFIGURING", "CF"};
    case Phase::running: return {"RUNNING", "R"};
    case Phase::suspended: return {"SUSPENDED", "S"};
    case Phase::finishing: return {"COMPLETING", "CG"};
    case Phase::ended: return ended_words(outcome.value_or(Outcome::completed));
  }
  return {"UNKNOWN", "?"};
}

Result<void> check_states(const std::vector<std::string>& states) {
  for (const std::string& state : states) {
    const std::string word = upper(state);
    if (std::find(std::begin(kStates), std::end(kStates), word) != std::end(kStates)) continue;
    std::string valid;
    for (std::size_t i = 0; i + 1 < std::size(kStates); i += 2)
      valid += (valid.empty() ? "" : ",") + std::string(kStates[i]);
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("Invalid job state specified: {}\nValid job states include: {}", state, valid));
  }
  return {};
}

JobWords words_of(const proto::JobRow& row) {
  if (row.phase == Phase::queued && row.verdict.reason == Reason::special_exit)
    return {"SPECIAL_EXIT", "SE"};
  return words_of(row.phase, row.outcome);
}

std::string shown_id(const proto::JobRow& row) {
  if (row.het) return fmt::format("{}+{}", row.het->leader.value(), row.het->offset);
  if (row.array_job.value() == 0) return std::to_string(row.job.value());
  if (row.array_task) return fmt::format("{}_{}", row.array_job.value(), *row.array_task);
  return fmt::format("{}_[{}]", row.array_job.value(), row.array_tasks);
}

std::string het_id_set(const proto::JobRow& row) {
  if (!row.het) return {};
  return fmt::format("{}-{}", row.het->leader.value(), row.het->member(row.het->size - 1).value());
}

std::string first_node_of(const std::string& hostlist) {
  const auto names = expand_hostlist(hostlist);
  return names && !names->empty() ? names->front() : "";
}

Duration run_time(const proto::JobRow& row, Instant now) {
  if (!row.started) return {};
  const Duration whole = row.ended.value_or(std::max(now, *row.started)) - *row.started;
  return std::max(whole - row.suspended, Duration{});
}

std::optional<Instant> expected_end_of(const proto::JobRow& row) {
  if (row.ended) return row.ended;
  if (!row.started || !row.time_limit) return std::nullopt;
  return *row.started + *row.time_limit + row.suspended;
}

namespace {

// Text like "RaisedSignal:9(Killed)": one word, as every reason is.
std::string raised(int signal) {
  const char* name = ::strsignal(signal);
  std::string text = fmt::format("RaisedSignal:{}({})", signal, name != nullptr ? name : "");
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

}  // namespace

std::string reason_of(const proto::JobRow& row) {
  if (row.phase == Phase::queued) {
    std::string text(enum_name(row.verdict.reason));
    if (row.verdict.reason == Reason::use_limit)
      text = row.verdict.subject.substr(0, row.verdict.subject.find(':'));
    if (row.verdict.reason == Reason::nodes_unavailable && !row.verdict.subject.empty())
      text += ", UnavailableNodes:" + row.verdict.subject;
    return text;
  }
  if (row.phase != Phase::ended || !row.outcome) return "None";
  switch (*row.outcome) {
    case Outcome::failed:
      // The node refused it: the job's owner has to fix it.
      if (!row.started) return "JobLaunchFailure";
      return row.exit.signal != 0 ? raised(row.exit.signal) : "NonZeroExitCode";
    case Outcome::timeout: return "TimeLimit";
    case Outcome::out_of_memory: return "OutOfMemory";
    case Outcome::node_fail: return "NodeDown";
    case Outcome::launch_failed: return "JobLaunchFailure";
    case Outcome::deadline: return "DeadLine";
    case Outcome::preempted: return "Preempted";
    default: return "None";
  }
}

std::string where_or_why(const proto::JobRow& row) {
  const bool placed = row.phase == Phase::starting || row.phase == Phase::running ||
                      row.phase == Phase::suspended || row.phase == Phase::finishing;
  if (placed || (row.phase == Phase::ended && row.outcome == Outcome::completed))
    return row.node_list;
  return "(" + reason_of(row) + ")";
}

namespace {

struct NodeWords {
  std::string_view state;
  std::string_view compact;
};

NodeWords node_words(const proto::NodeRow& node) {
  const bool busy = node.jobs > 0;
  if (node.health != NodeHealth::up) return {"down", "down"};
  if (node.intent == NodeIntent::closed) return {"down", "down"};
  if (node.intent == NodeIntent::drain)
    return busy ? NodeWords{"draining", "drng"} : NodeWords{"drained", "drain"};
  const bool full = node.allocated[Resource::cpu] >= node.total[Resource::cpu];
  const bool idle = !busy && node.allocated[Resource::cpu] == 0;
  if (idle && node.maintenance) return {"maint", "maint"};
  if (idle && !node.reservation.empty()) return {"reserved", "resv"};
  if (idle) return {"idle", "idle"};
  return full ? NodeWords{"allocated", "alloc"} : NodeWords{"mixed", "mix"};
}

}  // namespace

std::string node_state(const proto::NodeRow& node) {
  return std::string(node_words(node).state) + (node.health == NodeHealth::lost ? "*" : "");
}

std::string node_state_compact(const proto::NodeRow& node) {
  return std::string(node_words(node).compact) + (node.health == NodeHealth::lost ? "*" : "");
}

bool has_gpus(const proto::JobRow& row) {
  return row.gpus > 0 || row.gpu_parts > 0;
}

std::string gpus_text(const proto::JobRow& row) {
  return format_thousandths(std::int64_t{row.gpus} * kGpuUnit + row.gpu_parts);
}

std::string labels_text(const std::map<std::string, std::string>& labels) {
  std::string out;
  for (const auto& [key, value] : labels)
    out.append(out.empty() ? "" : ",").append(key).append("=").append(value);
  return out;
}

std::string exit_text(const ExitStatus& exit) {
  return fmt::format("{}:{}", exit.code, exit.signal);
}

int exit_code(const proto::JobRow& row) {
  if (row.exit.signal != 0) return 128 + row.exit.signal;
  if (row.exit.code != 0) return row.exit.code;
  return row.outcome == Outcome::completed ? 0 : 1;
}

}  // namespace gantry::cli
