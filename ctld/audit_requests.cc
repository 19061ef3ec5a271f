#include "ctld/audit_requests.h"

#include <fmt/core.h>

#include "common/proto/any/any_message.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/message_table.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/rpc/audit_about.h"

namespace gantry::ctld {
namespace {

std::string how_of(const rpc::Session& session) {
  if (!session.identity) return "";
  const core::Identity& who = *session.identity;
  if (who.inside) return fmt::format("job {} on {}", who.inside->job.value(), session.node);
  if (session.relayed()) return "login node " + session.node;
  if (who.token_ends) return "token";
  if (session.registered_key.empty()) return "munge";
  return "key " + session.registered_key.substr(0, 16);
}

// Reading another user's script or output needs a right, so it is recorded.
std::optional<JobId> private_of(const proto::AnyMessage& message) {
  if (const auto* log = message.get_if<proto::ReadLog>()) return log->job.id();
  const auto* show = message.get_if<proto::ShowJob>();
  return show != nullptr && show->with_script ? std::optional(show->job.id()) : std::nullopt;
}

}  // namespace

Result<void> AuditRequests::open(const std::string& directory) {
  ASSIGN(log, audit::AuditLog::open(directory, clock_.now()));
  trail_ = std::make_unique<rpc::AuditTrail>(std::move(*log));
  return {};
}

audit::Record AuditRequests::record_of(const rpc::Session& session, const proto::MessageRow& row) {
  audit::Record out;
  out.time = clock_.now();
  out.message = row.name;
  out.how = how_of(session);
  out.right = "none";
  if (!session.identity) return out;
  const core::Identity& who = *session.identity;
  out.user = who.owner.user;
  out.uid = who.owner.uid.value();
  core::Identity granted = who;
  core::take_grants(core_.state(), granted);
  out.right = core::is_admin(granted)                     ? "admin"
              : core::is_operator(core_.state(), granted) ? "operator"
                                                          : "user";
  return out;
}

void AuditRequests::begin(const rpc::Session& session, const net::MessageHeader& header,
                          const proto::AnyMessage& message) {
  if (!trail_) return;
  const proto::MessageRow row = *proto::find_message(header.type);
  bool written = rpc::AuditTrail::is_written(row);
  if (const auto id = private_of(message); id && session.identity) {
    // A job that does not exist counts as another user's: the time that a record takes would tell
    // the two apart.
    const core::Job* job = core_.state().jobs.find(*id);
    written = job == nullptr || job->uid != session.identity->owner.uid;
  }
  if (!written) return;
  audit::Record record = record_of(session, row);
  record.about = rpc::about(message);
  // Every user may submit, so a submit by an operator uses no right; the journal has it before the
  // answer.
  const bool uses_right = row.kind == proto::MessageKind::write && record.right != "user" &&
                          row.type != proto::MessageType::SubmitJob;
  const bool weighty = row.type == proto::MessageType::MakeToken || row.lasts || uses_right;
  trail_->begin(session.id, header.request, std::move(record), weighty);
}

Result<void> AuditRequests::end(core::ConnectionId connection, std::uint64_t request,
                                const Error* refused) {
  return trail_ ? trail_->finish(connection, request, refused, clock_.now()) : Result<void>{};
}

Result<void> AuditRequests::answers(const std::vector<core::Reply>& replies) {
  for (const core::Reply& reply : replies) {
    const auto refused = rpc::refusal_in(reply.message);
    if (auto r = end(reply.connection, reply.request, refused ? &*refused : nullptr); !r) return r;
  }
  return sync_if_due();
}

Result<void> AuditRequests::refused(const rpc::Session& session, const proto::MessageRow& row,
                                    std::string about, const Error& error) {
  if (!trail_) return {};
  audit::Record record = record_of(session, row);
  record.about = std::move(about);
  record.outcome = name_of(error.code);
  record.why = error.message;
  return trail_->write(std::move(record));
}

Result<void> AuditRequests::forget(core::ConnectionId connection) {
  return trail_ ? trail_->forget(connection, clock_.now()) : Result<void>{};
}

Result<void> AuditRequests::sync_if_due() {
  return trail_ && trail_->must_sync() ? trail_->sync() : Result<void>{};
}

Result<void> AuditRequests::sync() {
  return trail_ ? trail_->sync() : Result<void>{};
}

}  // namespace gantry::ctld
