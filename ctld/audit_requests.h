// What is recorded in the controller's audit log: which requests, who sent them, and their outcome.
// An error of any call means that the log cannot be written; then the controller stops, as it does
// if the store cannot be written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/loop/clock.h"
#include "common/net/header.h"
#include "common/proto/any/any_message.h"
#include "common/proto/message_table.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/rpc/audit_trail.h"
#include "ctld/rpc/sessions.h"

namespace gantry::ctld {

class AuditRequests {
 public:
  AuditRequests(const core::Core& core, loop::ClusterClock& clock) : core_(core), clock_(clock) {}
  // Opens the log. Before that nothing is written, and no other call can fail.
  Result<void> open(const std::string& directory);

  // Notes a request before it is answered.
  void begin(const rpc::Session& session, const net::MessageHeader& header,
             const proto::AnyMessage& message);
  // The answer to the request is known. Does nothing if the request need not be recorded, or is
  // recorded already.
  Result<void> end(core::ConnectionId connection, std::uint64_t request, const Error* refused);
  // All answers of a turn, before any of them leaves.
  Result<void> answers(const std::vector<core::Reply>& replies);
  // A message that was refused before its content was looked at.
  Result<void> refused(const rpc::Session& session, const proto::MessageRow& row, std::string about,
                       const Error& error);
  Result<void> forget(core::ConnectionId connection);
  Result<void> sync_if_due();  // makes durable the records that must precede answers
  Result<void> sync();

 private:
  audit::Record record_of(const rpc::Session& session, const proto::MessageRow& row);
  const core::Core& core_;
  loop::ClusterClock& clock_;
  std::unique_ptr<rpc::AuditTrail> trail_;
};

}  // namespace gantry::ctld
