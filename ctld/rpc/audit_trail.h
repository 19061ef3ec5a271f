// The audit log as requests make it: a request is noted when it comes, and written when its answer
// is known. The log gets all requests that change something, those that need a role, those that
// read scripts and output of other users' jobs, and refused credentials.
//
// Order and durability: the record of a change by an administrator or operator, and of one that
// gives rights, is on the disk before the answer leaves (must_sync()). All others, including
// submits by operators, are there within a second (sync()); if the machine crashes before that, the
// journal still has what they changed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/audit/audit_log.h"
#include "common/proto/message_table.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

class AuditTrail {
 public:
  explicit AuditTrail(audit::AuditLog log) : log_(std::move(log)) {}

  // Whether requests of this row are recorded whoever sends them.
  static bool is_written(const proto::MessageRow& row);

  // What is known when the request comes: everything except the outcome. `weighty`: its record has
  // to be on the disk before the answer.
  void begin(core::ConnectionId connection, std::uint64_t request, audit::Record record,
             bool weighty);
  // Records the answer; does nothing if the request was not noted. `refused` is null if it was
  // carried out.
  Result<void> finish(core::ConnectionId connection, std::uint64_t request, const Error* refused,
                      Instant now);
  // The connection has ended: requests that are still noted for it get no answer.
  Result<void> forget(core::ConnectionId connection, Instant now);
  // Writes a record whose outcome is known.
  Result<void> write(audit::Record record);

  [[nodiscard]] bool must_sync() const { return must_sync_; }
  Result<void> sync();
  [[nodiscard]] const audit::AuditLog& log() const { return log_; }

 private:
  struct Noted {
    audit::Record record;
    bool weighty = false;
  };
  audit::AuditLog log_;
  // A client may use one number for several requests; each of them is recorded.
  std::multimap<std::pair<core::ConnectionId, std::uint64_t>, Noted> noted_;
  bool must_sync_ = false;
};

// The error of an answer that is one, or in which every part failed; null if something was done.
std::optional<Error> refusal_in(const core::ReplyMessage& reply);

}  // namespace gantry::rpc
