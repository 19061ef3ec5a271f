#include "ctld/acct/stored_rows.h"

#include "ctld/acct/history.h"

namespace gantry::acct {
namespace {

// True if the row is the one of the job, or of the task, that is named. A run that was followed by
// another is none.
bool is_named(const proto::HistoryRow& row, const proto::JobRef& ref) {
  if (row.requeued) return false;
  if (ref.tasks.empty()) return row.row.job == ref.id();
  return row.row.array_task == ref.tasks.front().first;
}

Result<std::optional<proto::StoredRow>> newest(const store::Store& store,
                                               const proto::JobRef& ref) {
  const bool several =
      ref.tasks.size() > 1 || (!ref.tasks.empty() && ref.tasks[0].first != ref.tasks[0].last);
  if (several) return std::nullopt;
  store::HistoryScan scan;
  scan.id = ref.id();
  std::size_t examined = 0;
  do {
    auto page = store.read_history(scan);
    if (!page) return tl::unexpected(page.error());
    for (store::HistoryEntry& entry : page->entries) {
      const auto row = from_entry(entry);
      if (!row || !is_named(*row, ref)) continue;
      std::optional<JobId> array;
      if (row->row.array_job != JobId{}) array = row->row.array_job;
      return proto::StoredRow{entry.end, entry.job, array, std::move(entry.data)};
    }
    examined += scan.limit;
    scan.resume = page->resume;
  } while (scan.resume && examined < kMaxExamined);
  return std::nullopt;
}

}  // namespace

Result<void> attach_stored(const store::Store& store, proto::NoteJobs& message) {
  message.stored.clear();
  if (message.jobs.size() > proto::NoteJobs::kMaxJobs) return {};  // the core refuses it
  for (const proto::JobRef& ref : message.jobs) {
    auto row = newest(store, ref);
    if (!row) return tl::unexpected(row.error());
    message.stored.push_back(std::move(*row));
  }
  return {};
}

}  // namespace gantry::acct
