#include "cli/slurm/history.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace gantry::cli::slurm {
namespace {

// What is left of an array whose tasks all have rows of their own.
bool is_used_up(const proto::JobRow& row) {
  return row.array_job.value() != 0 && !row.array_task &&
         (row.array_tasks.empty() || row.array_tasks.front() == '%');
}

using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t>;

Key key_of(const proto::JobRow& row, bool each_run) {
  const std::uint64_t array = row.array_job.value();
  const std::uint64_t task = row.array_task ? *row.array_task : array != 0 ? UINT64_MAX : 0;
  return {array != 0 ? array : row.job.value(), task, row.job.value(), each_run ? row.restarts : 0};
}

// An allocation, which has no batch step, is told of with one.
void add_extern(proto::HistoryRow& job) {
  if (!job.row.started || job.row.node_list.empty()) return;
  const auto is_extern = [](const proto::StepRow& s) { return s.step == "extern"; };
  if (std::any_of(job.steps.begin(), job.steps.end(), is_extern)) return;
  proto::StepRow step;
  step.step = "extern";
  step.name = "extern";
  step.running = job.row.phase != Phase::ended;
  step.started = *job.row.started;
  step.ended = job.row.ended;
  step.cpus = job.row.cpus;
  step.tasks = job.row.nodes;
  step.node_list = job.row.node_list;
  const auto after_batch = std::find_if(job.steps.begin(), job.steps.end(),
                                        [](const proto::StepRow& s) { return s.step != "batch"; });
  job.steps.insert(after_batch, std::move(step));
}

}  // namespace

Result<History> ask_history(Session& session, proto::QueryHistory query) {
  std::map<Key, proto::HistoryRow> found;
  History history;
  while (true) {
    auto page = session.call<proto::HistoryReply>(query);
    if (!page) return tl::unexpected(page.error());
    history.now = page->now;
    for (proto::HistoryRow& job : page->rows) {
      if (is_used_up(job.row)) continue;
      const auto [at, added] = found.try_emplace(key_of(job.row, query.duplicates));
      if (added || at->second.row.restarts <= job.row.restarts) at->second = std::move(job);
    }
    if (!page->more) break;
    if (page->position == query.position)
      return fail(ErrorCode::malformed, "the controller gave a page of jobs twice");
    query.position = page->position;
  }
  for (auto& [key, job] : found) {
    add_extern(job);
    history.jobs.push_back(std::move(job));
  }
  return history;
}

std::string_view priority_class_of(const proto::HistoryRow& job) {
  return job.priority_class.empty() ? std::string_view("normal") : job.priority_class;
}

void keep_only(History& history, const std::vector<std::string>& qos,
               const std::vector<std::string>& wckeys) {
  const auto asked = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  std::erase_if(history.jobs, [&](const proto::HistoryRow& job) {
    return !asked(qos, priority_class_of(job)) || !asked(wckeys, job.wckey);
  });
}

void cut_times(History& history, std::optional<Instant> start, std::optional<Instant> end) {
  const auto cut = [&](std::optional<Instant>& t) {
    if (t && start) t = std::max(*t, *start);
    if (t && end) t = std::min(*t, *end);
  };
  for (proto::HistoryRow& job : history.jobs) {
    cut(job.row.started);
    cut(job.row.ended);
  }
}

}  // namespace gantry::cli::slurm
