#include "cli/slurm/records/queue.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/job_words.h"
#include "cli/option.h"
#include "cli/slurm/records/job_json.h"
#include "common/proto/job_text.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::size_t kAskedAhead = 64;  // most requests about single jobs that are open at once

// The words of states, in Slurm's numbering; this is the order of its sort key t.
constexpr std::string_view kStateWords[] = {
    "PENDING",      "RUNNING",     "SUSPENDED", "COMPLETED",     "CANCELLED", "FAILED",
    "TIMEOUT",      "NODE_FAIL",   "PREEMPTED", "BOOT_FAIL",     "DEADLINE",  "OUT_OF_MEMORY",
    "COMPLETING",   "CONFIGURING", "RESIZING",  "RESV_DEL_HOLD", "REQUEUED",  "REQUEUE_FED",
    "REQUEUE_HOLD", "REVOKED",     "SIGNALING", "SPECIAL_EXIT",  "STAGE_OUT", "STOPPED"};

void add_queue_rows(std::vector<QueueRow>& out, proto::ListJobsReply&& page, bool each_task,
                    std::span<const proto::JobRef> refs) {
  for (proto::JobRow& row : page.rows) {
    if (!narrow_array(row, refs)) continue;
    const auto tasks = parse_index_ranges(row.array_tasks);
    if (!each_task || row.array_tasks.empty() || !tasks) {
      out.push_back({std::move(row), std::nullopt, page.now, {}});
      continue;
    }
    for (const IndexRange& range : tasks->ranges)
      for (std::uint64_t i = range.first; i <= range.last; i += range.step) {
        out.push_back({row, std::nullopt, page.now, {}});
        out.back().row.array_tasks.clear();
        out.back().row.array_task = static_cast<std::uint32_t>(i);
      }
  }
}

// Copies the job's details to a row. The row may stand for some tasks of an array, and keeps its
// own task numbers.
void take_detail(QueueRow& row, const proto::JobDetail& job) {
  row.detail = job;
  row.detail->row.array_task = row.row.array_task;
  row.detail->row.array_tasks = row.row.array_tasks;
}

// Asks for the details of each row's job, several at a time. A job that has gone meanwhile gets
// none.
Result<void> add_details(Session& session, std::vector<QueueRow>& rows) {
  std::vector<std::uint64_t> asked(rows.size());
  std::size_t sent = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (; sent < rows.size() && sent < i + kAskedAhead; ++sent) {
      const bool repeated = sent > 0 && rows[sent].row.job == rows[sent - 1].row.job;
      if (repeated) continue;  // tasks of the same array's rest share an answer
      ASSIGN(id, session.send(proto::ShowJob{{rows[sent].row.job, {}}, false}));
      asked[sent] = *id;
    }
    if (asked[i] == 0) {
      if (i > 0 && rows[i].row.job == rows[i - 1].row.job && rows[i - 1].detail)
        take_detail(rows[i], *rows[i - 1].detail);
      continue;
    }
    auto reply = session.receive<proto::ShowJobReply>(asked[i], kCallTimeout);
    if (!reply && reply.error().code != ErrorCode::not_found) return tl::unexpected(reply.error());
    if (!reply) continue;
    for (const proto::JobDetail& job : reply->jobs)
      if (job.row.job == rows[i].row.job || reply->jobs.size() == 1) take_detail(rows[i], job);
  }
  return {};
}

// a reference without tasks means the whole job
std::string sort_text(const QueueRow& row, char letter) {
  const auto padded = [](std::int64_t n) { return fmt::format("{:020}", n); };
  const auto instant = [&](const std::optional<Instant>& t) { return padded(t ? t->us : 0); };
  switch (letter) {
    case 't':
    case 'T': {
      const auto word = words_of(row.row).state;
      const auto at = std::find(std::begin(kStateWords), std::end(kStateWords), word);
      return padded(at - std::begin(kStateWords));
    }
    case 'p':
    case 'Q': return padded(shown_priority(row.row));
    case 'i':
    case 'F': {
      const JobId array = row.row.array_job;
      const std::uint64_t id = array.value() != 0 ? array.value() : row.row.job.value();
      const std::int64_t task = row.row.array_task ? std::int64_t{*row.row.array_task} : -1;
      return letter == 'F' ? padded(static_cast<std::int64_t>(id))
                           : padded(static_cast<std::int64_t>(id)) +
                                 padded(task < 0 ? INT64_C(1) << 40 : task);
    }
    case 'A': return padded(static_cast<std::int64_t>(row.row.slurm_id().value()));
    case 'C': return padded(row.row.cpus);
    case 'D': return padded(row.row.nodes);
    case 'U': return padded(row.row.uid.value());
    case 'V': return instant(row.row.submitted);
    case 'S': {
      const auto start = row.row.started ? row.row.started : row.row.expected_start;
      return start ? instant(start) : std::string(20, '9');
    }
    case 'e': return instant(expected_end(row.row));
    case 'M': return padded(run_time(row.row, row.now).us);
    case 'l': return padded(row.row.time_limit ? row.row.time_limit->us : INT64_MAX);
    case 'L':
      return padded(
          row.row.time_limit
              ? std::max<std::int64_t>(0, (*row.row.time_limit - run_time(row.row, row.now)).us)
              : INT64_MAX);
    default: break;
  }
  std::string text;
  for (const Column<QueueRow>& field : queue_fields())
    if (field.letter == letter) field.put(text, row);
  return text;
}

struct SortKey {
  char letter;
  bool down;
};
std::vector<SortKey> sort_keys(std::string_view keys) {
  std::vector<SortKey> out;
  bool down = false;
  for (const char c : keys) {
    if (c == '-' || c == '+')
      down = c == '-';
    else if (c == ',' || c == ' ')
      down = false;
    else
      out.push_back({c, std::exchange(down, false)});
  }
  return out;
}

}  // namespace

bool narrow_array(proto::JobRow& row, std::span<const proto::JobRef> refs) {
  if (row.array_tasks.empty() || row.array_task) return true;
  std::vector<const proto::JobRef*> of_tasks;
  for (const proto::JobRef& ref : refs) {
    if (ref.job != row.array_job) continue;
    if (ref.tasks.empty()) return true;  // the whole job is meant
    of_tasks.push_back(&ref);
  }
  const auto rest = parse_index_ranges(row.array_tasks);
  if (of_tasks.empty() || !rest) return true;
  std::vector<std::uint32_t> named;
  for (const IndexRange& range : rest->ranges)
    for (std::uint64_t i = range.first; i <= range.last; i += range.step) {
      const auto index = static_cast<std::uint32_t>(i);
      if (std::any_of(of_tasks.begin(), of_tasks.end(),
                      [&](const proto::JobRef* ref) { return contains_index(ref->tasks, index); }))
        named.push_back(index);
    }
  if (named.empty()) return false;
  row.array_tasks = named.size() > 1 ? format_index_ranges(compress_indexes(named)) : "";
  if (named.size() == 1) row.array_task = named.front();
  return true;
}

Result<std::vector<QueueRow>> ask_queue(Session& session, const QueueQuestion& question,
                                        std::string_view cluster) {
  std::vector<QueueRow> rows;
  proto::ListJobs list = question.list;
  while (true) {
    ASSIGN(page, session.call<proto::ListJobsReply>(list));
    if (question.one_job && !page->unknown.empty())
      return fail(ErrorCode::not_found, "there is no job " + format_job_ref(page->unknown[0]));
    const bool more = page->more;
    const JobId next = page->next;
    add_queue_rows(rows, std::move(*page), question.each_task, list.filter.jobs);
    if (!more) break;
    if (next <= list.after)
      return fail(ErrorCode::malformed, "the controller gave a page of jobs twice");
    list.after = next;
  }
  for (QueueRow& row : rows) row.cluster = std::string(cluster);
  if (question.details) TRY(add_details(session, rows));
  if (!question.qos.empty())
    std::erase_if(rows, [&](const QueueRow& row) {
      if (!row.detail) return true;
      const std::string& named = row.detail->spec.priority_class;
      const std::string_view qos = named.empty() ? std::string_view("normal") : named;
      return std::find(question.qos.begin(), question.qos.end(), qos) == question.qos.end();
    });
  if (!question.not_of.empty())
    std::erase_if(rows, [&](const QueueRow& row) { return row.row.user == question.not_of; });
  const auto wanted = [&](const GresCount& g) {
    return std::find(question.licenses.begin(), question.licenses.end(), g.name) !=
           question.licenses.end();
  };
  if (!question.licenses.empty())
    std::erase_if(rows, [&](const QueueRow& row) {
      if (!row.detail) return true;
      const auto& held = row.detail->spec.shape.licenses;
      return std::none_of(held.begin(), held.end(), wanted);
    });
  return rows;
}

Result<void> check_queue_sort(std::string_view keys) {
  // The letters that Slurm's squeue can sort by, and the characters allowed between them.
  static constexpr std::string_view kKnown =
      "BCDGHIJLMNOPQSTUVcdefghijlmnptuvz"
      "+-,# ";
  for (const char c : keys)
    if (kKnown.find(c) == std::string_view::npos)
      return fail(ErrorCode::invalid_argument, fmt::format("Invalid sort specification: {}", c));
  return {};
}

void split_by_partition(std::vector<QueueRow>& rows) {
  std::vector<QueueRow> out;
  for (QueueRow& row : rows) {
    const std::vector<std::string> names = split_list(row.row.partition);
    if (names.size() != row.row.queue_priorities.size()) {
      out.push_back(std::move(row));
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      QueueRow& one = out.emplace_back(row);
      one.row.partition = names[i];
      one.row.priority = row.row.queue_priorities[i];
    }
  }
  rows = std::move(out);
}

void sort_queue(std::vector<QueueRow>& rows, std::string_view text) {
  const auto keys = sort_keys(text);
  struct Sorted {
    std::vector<std::string> by;
    std::size_t index;
  };
  std::vector<Sorted> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    order[i].index = i;
    for (const SortKey& key : keys) order[i].by.push_back(sort_text(rows[i], key.letter));
  }
  std::stable_sort(order.begin(), order.end(), [&](const Sorted& a, const Sorted& b) {
    for (std::size_t k = 0; k < keys.size(); ++k)
      if (const int c = a.by[k].compare(b.by[k]); c != 0) return keys[k].down ? c > 0 : c < 0;
    return false;
  });
  std::vector<QueueRow> out;
  out.reserve(rows.size());
  for (const Sorted& one : order) out.push_back(std::move(rows[one.index]));
  rows = std::move(out);
}

bool sort_needs_detail(std::string_view text) {
  for (const SortKey& key : sort_keys(text))
    for (const Column<QueueRow>& field : queue_fields())
      if (field.letter == key.letter && field.more) return true;
  return false;
}

Result<void> add_states(std::vector<std::string>& states, std::string_view text) {
  for (std::string& word : split_list(text)) {
    if (!check_states({word})) {
      std::string valid;
      for (const std::string_view known : kStateWords)
        valid += (valid.empty() ? "" : ",") + std::string(known);
      return fail(ErrorCode::invalid_argument,
                  fmt::format("Invalid job state specified: {}\nValid job states include: {}", word,
                              valid));
    }
    states.push_back(std::move(word));
  }
  return {};
}

}  // namespace gantry::cli::slurm
