#include "ctld/rpc/audit_trail.h"

#include "common/proto/job_change.h"
#include "common/proto/message_table.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"

namespace gantry::rpc {
namespace {

constexpr std::size_t kMostWhy = 500;  // bytes of an error's sentence

Error error_of(const proto::ErrorReply& reply) {
  return {static_cast<ErrorCode>(reply.code), reply.message};
}

}  // namespace

bool AuditTrail::is_written(const proto::MessageRow& row) {
  return row.kind == proto::MessageKind::write || row.right != proto::Right::everybody ||
         row.type == proto::MessageType::MakeToken || row.type == proto::MessageType::ReadAudit;
}

void AuditTrail::begin(core::ConnectionId connection, std::uint64_t request, audit::Record record,
                       bool weighty) {
  noted_.emplace(std::pair{connection, request}, Noted{std::move(record), weighty});
}

Result<void> AuditTrail::finish(core::ConnectionId connection, std::uint64_t request,
                                const Error* refused, Instant now) {
  const auto it =
      noted_.lower_bound({connection, request});  // the earliest request with this number
  if (it == noted_.end() || it->first != std::pair{connection, request}) return {};
  Noted noted = std::move(it->second);
  noted_.erase(it);
  noted.record.time = now;
  noted.record.outcome = refused != nullptr ? name_of(refused->code) : "done";
  if (refused != nullptr) noted.record.why = refused->message;
  must_sync_ = must_sync_ || (noted.weighty && refused == nullptr);
  return write(std::move(noted.record));
}

Result<void> AuditTrail::forget(core::ConnectionId connection, Instant now) {
  for (auto it = noted_.lower_bound({connection, 0});
       it != noted_.end() && it->first.first == connection;) {
    Noted noted = std::move(it->second);
    it = noted_.erase(it);
    noted.record.time = now;
    noted.record.outcome = "unanswered";
    if (auto r = write(std::move(noted.record)); !r) return r;
  }
  return {};
}

Result<void> AuditTrail::write(audit::Record record) {
  if (record.why.size() > kMostWhy) record.why.resize(kMostWhy);
  return log_.add(std::move(record));
}

Result<void> AuditTrail::sync() {
  must_sync_ = false;
  return log_.sync();
}

std::optional<Error> refusal_in(const core::ReplyMessage& reply) {
  if (const auto* error = reply.get_if<proto::ErrorReply>()) return error_of(*error);
  if (const auto* jobs = reply.get_if<proto::JobsDone>();
      jobs != nullptr && jobs->changed == 0 && !jobs->refused.empty())
    return error_of(jobs->refused.front().error);
  return std::nullopt;
}

}  // namespace gantry::rpc
