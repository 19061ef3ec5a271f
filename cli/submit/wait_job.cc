// Waits with one WaitJobs request that stays open; in between it looks at the queue for progress.
#include "cli/submit/wait_job.h"

#include <fmt/core.h>

#include <ctime>

#include "cli/columns/job_words.h"
#include "cli/terminal.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

// Between two looks at the queue, if a person watches.
constexpr Duration kLook = milliseconds(500);
constexpr Duration kPlainLook = seconds(15);  // the same if nobody watches

class Progress {
 public:
  Progress(std::string program, JobId job, bool quiet)
      : program_(std::move(program)), job_(job), quiet_(quiet), live_(is_terminal(stderr)) {}

  [[nodiscard]] Duration interval() const { return live_ && !quiet_ ? kLook : kPlainLook; }
  [[nodiscard]] bool wanted() const { return !quiet_; }

  void show(const proto::ListJobsReply& reply) {
    if (quiet_ || reply.rows.empty()) return;
    std::string text = reply.rows.size() > 1 ? summary(reply) : one(reply.rows[0], reply.now);
    say(std::move(text));
  }
  void say(std::string text) {
    if (quiet_ || (!live_ && text == last_)) return;
    if (live_)
      fmt::print(stderr, "\r\033[K{}",
                 text.substr(0, static_cast<std::size_t>(terminal_width(stderr) - 1)));
    else
      fmt::print(stderr, "{}: {}\n", program_, text);
    std::fflush(stderr);
    last_ = std::move(text);
  }
  void end() const {
    if (live_ && !last_.empty()) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::string one(const proto::JobRow& row, Instant now) const {
    std::string text = fmt::format("job {} {}", shown_id(row), words_of(row).state);
    if (row.phase == Phase::queued) return text + fmt::format(" ({})", reason_of(row));
    if (!row.node_list.empty()) text += " on " + row.node_list;
    if (live_ && row.started)
      text += " for " + format_duration(row.ended.value_or(now) - *row.started);
    return text;
  }
  // The summary of an array: how many tasks are in which state.
  std::string summary(const proto::ListJobsReply& reply) const {
    std::map<std::string_view, std::size_t> counts;
    for (const proto::JobRow& row : reply.rows) {
      std::size_t n = 1;
      if (!row.array_tasks.empty())
        if (const auto tasks = parse_index_ranges(row.array_tasks))
          n = count_indexes(tasks->ranges);
      counts[words_of(row).state] += n;
    }
    std::string text = fmt::format("job {}:", job_.value());
    for (const auto& [state, n] : counts) text += fmt::format(" {} {}", n, state);
    return text;
  }

  std::string program_;
  JobId job_;
  bool quiet_;
  bool live_;
  std::string last_;
};

proto::ListJobs look_at(JobId job) {
  proto::ListJobs list;
  list.filter.jobs.push_back({job, {}});
  list.filter.states.emplace_back("all");
  return list;
}

// Waits for the reply, or for an error of the connection.
Result<proto::WaitReply> wait_on(Session& session, JobId job, Progress& progress) {
  proto::WaitJobs wait;
  wait.jobs.push_back({job, {}});
  ASSIGN(request, session.send(wait));
  while (true) {
    auto reply = session.receive<proto::WaitReply>(*request, progress.interval());
    if (reply || reply.error().code != ErrorCode::timed_out) return reply;
    ASSIGN(rows, session.call<proto::ListJobsReply>(look_at(job)));
    progress.show(*rows);
  }
}

}  // namespace

Result<int> wait_for_job(const std::string& program, Session session, JobId job, bool quiet) {
  Progress progress(program, job, quiet);
  std::optional<Session> current(std::move(session));
  while (true) {
    auto reply = wait_on(*current, job, progress);
    if (reply) {
      progress.end();
      int worst = 0;
      for (const proto::JobRow& row : reply->rows) worst = std::max(worst, exit_code(row));
      return worst;
    }
    if (!may_retry(reply.error().code)) {
      progress.end();
      return tl::unexpected(reply.error());
    }
    progress.say("the controller does not answer; still waiting");
    for (current.reset(); !current;) {
      const timespec pause{1, 0};
      ::nanosleep(&pause, nullptr);
      auto again = Session::open(program);
      if (again)
        current.emplace(std::move(*again));
      else if (!may_retry(again.error().code))
        return tl::unexpected(again.error());
    }
  }
}

}  // namespace gantry::cli
