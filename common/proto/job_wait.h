// Waiting for jobs. Client to ctld, and the answer.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "common/proto/job_query.h"

namespace gantry::proto {

// Waits for jobs. The answer comes when every named job (for an array: all tasks) has reached the
// phase; at once if they have. With `notices` it also comes, without rows, when NotifyJobs sends a
// line to one of them that is an allocation; whoever waits then asks again.
struct WaitJobs {
  std::vector<JobRef> jobs;
  bool until_started = false;  // running or ended; otherwise ended
  bool notices = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "until_started", s.until_started);
    v(3, "notices", s.notices);
  }
};

struct WaitReply {
  std::vector<JobRow> rows;  // one per job; an array has one row with the worst exit of its tasks
  std::string notice;        // the line of NotifyJobs; then there are no rows
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "notice", s.notice);
  }
};

}  // namespace gantry::proto
