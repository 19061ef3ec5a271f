// NoteJobs: what somebody notes of a job for its history. Of a job that State knows the note is
// part of the job; of an older one the stored row, which the shell has put into the message, is
// replaced.
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/limits.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

Result<void> check(const Context& ctx, const Identity& who, const proto::NoteJobs& m) {
  if (m.jobs.empty() || m.jobs.size() > proto::NoteJobs::kMaxJobs)
    return fail(ErrorCode::invalid_argument,
                fmt::format("name 1 to {} jobs", proto::NoteJobs::kMaxJobs));
  if (!m.derived_exit && !m.comment && !m.admin_comment && !m.system_comment)
    return fail(ErrorCode::invalid_argument, "there is nothing to note of the jobs");
  if ((m.admin_comment || m.system_comment) && !is_operator(ctx.state, who))
    return fail(ErrorCode::permission_denied,
                "only operators and administrators may set the comment of an administrator or of "
                "the system");
  for (const auto* text : {&m.comment, &m.admin_comment, &m.system_comment})
    if (*text)
      if (auto r = check_text("the comment", **text, kMaxCommentBytes); !r) return r;
  return {};
}

void refused(proto::JobsDone& done, const proto::JobRef& ref, ErrorCode code, std::string text) {
  done.refused.push_back({ref, {static_cast<std::uint16_t>(code), std::move(text)}});
}

void note(Context& ctx, const Job& job, const proto::NoteJobs& m, proto::JobsDone& done) {
  if (m.derived_exit && job.phase != Phase::ended)
    return refused(done, ref_of(ctx.state, job), ErrorCode::wrong_state,
                   fmt::format("job {} has not ended: only then its derived exit code can be set",
                               display_id(ctx.state, job)));
  ctx.record(event::JobNoted{job.id, m.comment, m.derived_exit, m.admin_comment, m.system_comment});
  ++done.changed;
}

bool may_change(const State& state, const Identity& who, const proto::JobRow& row) {
  if (row.uid == who.owner.uid) return true;
  if (who.inside) return false;
  return is_operator(state, who) ||
         (!row.tenant.empty() && has_right(state, who, row.tenant, TenantRight::change_jobs));
}

// Returns false if the asker may not change the job, or if there is no such row.
bool note_stored(Context& ctx, const Identity& who, const proto::StoredRow& stored,
                 const proto::NoteJobs& m) {
  auto row = codec::decode<proto::HistoryRow>(stored.row);
  if (!row || !may_change(ctx.state, who, row->row)) return false;
  if (m.derived_exit) row->derived_exit = m.derived_exit;
  if (m.comment) row->comment = *m.comment;
  if (m.admin_comment) row->admin_comment = *m.admin_comment;
  if (m.system_comment) row->system_comment = *m.system_comment;
  ctx.record(event::HistoryReplaced{stored.end, stored.job, stored.array, codec::encode(*row)});
  return true;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::NoteJobs&& m) {
  if (auto r = check(ctx, from.who, m); !r) return refuse(ctx, from, r.error());
  proto::JobsDone done;
  for (std::size_t i = 0; i < m.jobs.size(); ++i) {
    const proto::JobRef& ref = m.jobs[i];
    std::vector<proto::JobRef> unknown;
    for (const Selected& s : resolve(ctx.state, from.who, {ref}, unknown, May::change)) {
      const Job& job = ctx.state.jobs.at(s.job);
      // Pending tasks of an array have no row of their own. The array's record stands for them, but
      // a request that names tasks does not mean it.
      if (has_row(job) && (!job.is_array() || ref.tasks.empty())) note(ctx, job, m, done);
    }
    if (unknown.empty()) continue;
    if (i < m.stored.size() && m.stored[i] && note_stored(ctx, from.who, *m.stored[i], m))
      ++done.changed;
    else
      done.not_active.push_back(ref);
  }
  ctx.reply(from, std::move(done));
}

const Subject kNoteMessages{.name = "note", .handlers = kHandlers<proto::NoteJobs>};

}  // namespace gantry::core
