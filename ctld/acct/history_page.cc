// One page of an accounting query: live rows first, then the history. Named jobs are looked up one
// after the other through the index. Without names, the window is read in the order of end times.
#include <algorithm>
#include <map>

#include "common/assert.h"
#include "common/proto/history.h"
#include "ctld/acct/history.h"
#include "ctld/store/store.h"

namespace gantry::acct {

namespace {

class PageBuilder {
 public:
  PageBuilder(const store::Store& store, const HistoryQuery& query)
      : store_(store), query_(query), position_(query.position()) {}

  Result<proto::HistoryReply> build(LiveRows live, Instant now) {
    bool more = take_live(std::move(live));
    if (!more && position_.phase == PagePosition::Phase::history) {
      ASSIGN(left, take_history());
      more = *left;
    }
    if (!query_.series())
      for (proto::HistoryRow& row : rows_)
        for (GpuUsage& gpu : row.usage.gpus) gpu.data.clear();
    proto::HistoryReply reply;
    reply.rows = std::move(rows_);
    reply.more = more;
    reply.now = now;
    if (more) reply.position = to_bytes(position_);
    return reply;
  }

 private:
  [[nodiscard]] bool full() const {
    return rows_.size() >= query_.limit() || octets_ >= kMaxPageBytes || examined_ >= kMaxExamined;
  }

  // Returns true if there is more of the live phase.
  bool take_live(LiveRows live) {
    if (position_.phase != PagePosition::Phase::live) return false;
    for (proto::HistoryRow& row : live.rows) {
      GANTRY_ASSERT(row.row.job > position_.live_after, "live rows must be in id order");
      position_.live_after = row.row.job;
      if (query_.matches(row)) add(std::move(row), 0);
    }
    GANTRY_ASSERT(!live.more || !live.rows.empty(), "live rows that do not come to an end");
    if (live.more) return true;
    position_ = {};
    position_.phase = PagePosition::Phase::history;
    return false;
  }

  // Returns true if there is more of the history.
  Result<bool> take_history() {
    if (query_.jobs().empty()) return take_scan();
    for (; position_.named < query_.jobs().size(); ++position_.named, position_.after.reset()) {
      auto more = take_scan();
      if (!more || *more) return more;
    }
    return false;
  }

  // Reads one range: a window of time, or one named job. Returns true if the page is full before
  // the range ends.
  Result<bool> take_scan() {
    store::HistoryScan scan;
    scan.order = store::HistoryOrder::oldest_first;
    scan.from = query_.start();
    if (!query_.jobs().empty()) scan.id = query_.jobs()[position_.named].job;
    for (;;) {
      if (full()) return true;
      scan.resume = position_.after;
      scan.limit = std::clamp<std::size_t>(query_.limit(), 100, store::kMaxHistoryPage);
      ASSIGN(page, store_.read_history(scan));
      for (const store::HistoryEntry& entry : page->entries) {
        if (full()) return true;
        ++examined_;
        TRY(take(entry));
        position_.after = store::HistoryPosition{entry.end, entry.job};
      }
      if (!page->resume) return false;
    }
  }

  Result<void> take(const store::HistoryEntry& entry) {
    ASSIGN(row, from_entry(entry));
    // The index may find a row that this name does not mean, or that an earlier name found before;
    // such rows are skipped.
    if (!query_.jobs().empty() && query_.named_by(row->row) != position_.named) return {};
    if (query_.matches_apart_from_jobs(*row)) add(std::move(*row), entry.data.size());
    return {};
  }

  // A later row of the same job replaces an earlier one. With duplicates wanted, it only replaces a
  // row of the same run.
  void add(proto::HistoryRow row, std::size_t octets) {
    octets_ += octets;
    std::pair key{row.row.job, query_.duplicates() ? row.row.restarts : 0};
    auto [it, first] = by_job_.try_emplace(key, rows_.size());
    if (first) {
      rows_.push_back(std::move(row));
    } else if (rows_[it->second].row.restarts <= row.row.restarts) {
      rows_[it->second] = std::move(row);
    }
  }

  const store::Store& store_;
  const HistoryQuery& query_;
  PagePosition position_;
  std::vector<proto::HistoryRow> rows_;
  std::map<std::pair<JobId, std::uint32_t>, std::size_t> by_job_;  // rows of this page
  std::size_t octets_ = 0;
  std::size_t examined_ = 0;
};

}  // namespace

Result<proto::HistoryReply> next_page(const store::Store& store, const HistoryQuery& query,
                                      LiveRows live, Instant now) {
  return PageBuilder(store, query).build(std::move(live), now);
}

}  // namespace gantry::acct
