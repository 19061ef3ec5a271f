#include "ctld/acct/stored_rows.h"

#include <algorithm>

#include "common/proto/history.h"
#include "common/proto/job_ref.h"
#include "ctld/acct/history.h"
#include "ctld/store/store.h"

namespace gantry::acct {
namespace {

// True if the row is that of the named job or task. The row of a run that was followed by another
// does not count.
bool is_named(const proto::HistoryRow& row, const proto::JobRef& ref) {
  if (row.requeued) return false;
  if (ref.tasks.empty()) return row.row.job == ref.id();
  return row.row.array_task == ref.tasks.front().first;
}

// `examined` counts the records that were read for the whole message. The tasks of an array share
// its id, so each of them may need a look at all of them.
Result<std::optional<proto::StoredRow>> newest(const store::Store& store, const proto::JobRef& ref,
                                               std::size_t& examined) {
  const bool several =
      ref.tasks.size() > 1 || (!ref.tasks.empty() && ref.tasks[0].first != ref.tasks[0].last);
  if (several) return std::nullopt;
  store::HistoryScan scan;
  scan.id = ref.id();
  do {
    if (examined >= kMaxExamined)
      return fail(ErrorCode::invalid_argument,
                  "the history of these jobs is too long to look all of them up at once: name "
                  "fewer jobs");
    ASSIGN(page, store.read_history(scan));
    examined += std::max<std::size_t>(page->entries.size(), 1);
    for (store::HistoryEntry& entry : page->entries) {
      const auto row = from_entry(entry);
      if (!row || !is_named(*row, ref)) continue;
      std::optional<JobId> array;
      if (row->row.array_job != JobId{}) array = row->row.array_job;
      return proto::StoredRow{entry.end, entry.job, array, std::move(entry.data)};
    }
    scan.resume = page->resume;
  } while (scan.resume);
  return std::nullopt;
}

}  // namespace

Result<void> attach_stored(const store::Store& store, proto::NoteJobs& message) {
  message.stored.clear();
  if (message.jobs.size() > proto::NoteJobs::kMaxJobs)
    return {};  // then the core refuses the message
  std::size_t examined = 0;
  for (const proto::JobRef& ref : message.jobs) {
    ASSIGN(row, newest(store, ref, examined));
    message.stored.push_back(std::move(*row));
  }
  return {};
}

}  // namespace gantry::acct
