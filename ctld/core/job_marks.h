// JobMarks: what the controller has told others about each job, and when the job has to be looked
// at again. The marks do not survive a restart, because after a restart everything is sent again.
//
// Jobs lie in pages of neighbours, as in JobTable, because a million may wait. A page is freed when
// the last of its jobs is forgotten.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/state/job.h"

namespace gantry::core {

// A waiting job as the scheduler's replica has it (turn/queue.cc).
struct Told {
  std::uint32_t startable = 0;  // 0 = the scheduler does not have it
  std::int32_t rank = 0;
  std::int64_t priority = 0;
  Instant since{};
  ClassId cls{};
  bool raised = false;
};

struct JobMark {
  Told told;
  Instant timer{};          // when the job has to be looked at; 0 = never
  Instant moved{};          // when it last went to another of its queues; job/queue_choice.h
  std::uint32_t moves = 0;  // how often the job has moved
};

class JobMarks {
 public:
  // A job without a mark has the default one: nobody was told of it, and no timer is set.
  [[nodiscard]] const JobMark& at(JobId id) const {
    static const JobMark none;
    const std::size_t page = id.value() / kPage;
    return page < pages_.size() && pages_[page] ? pages_[page]->marks[id.value() % kPage] : none;
  }
  // Valid until the next call of a member that is not const.
  [[nodiscard]] JobMark& edit(JobId id) {
    const std::size_t page = id.value() / kPage, at = id.value() % kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Page>();
    Page& p = *pages_[page];
    if (!p.known[at]) ++p.used;
    p.known[at] = true;
    return p.marks[at];
  }
  void forget(JobId id) {  // allowed also for a job without a mark
    const std::size_t page = id.value() / kPage, at = id.value() % kPage;
    if (page >= pages_.size() || !pages_[page] || !pages_[page]->known[at]) return;
    Page& p = *pages_[page];
    p.marks[at] = {};
    p.known[at] = false;
    if (--p.used == 0) pages_[page].reset();
  }

 private:
  static constexpr std::size_t kPage = 256;
  struct Page {
    std::array<JobMark, kPage> marks;
    std::array<bool, kPage> known{};
    std::size_t used = 0;
  };
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace gantry::core
