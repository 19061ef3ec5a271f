// Messages that a node carries for others: requests from inside jobs, requests of the users of its
// machine, and output files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/proto/node_report.h"

namespace gantry::proto {

// A client's message from inside a job, brought by its node. ctld checks that the attempt is placed
// on that node, and treats the message as sent by the job's owner with role user. Answered by
// RelayReply. When a channel closes, the node reports that with type kRelayClosed and no body, and
// ctld answers in the same way: it drops the channel, and answers no earlier requests on it.
inline constexpr std::uint16_t kRelayClosed = 0;

struct NodeRelay {
  AttemptKey key;
  std::uint64_t channel = 0;  // the node's number for the connection
  std::uint16_t type = 0;     // message number of body
  std::uint64_t request = 0;
  Bytes body;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, channel), FIELD(3, type), FIELD(4, request), FIELD(5, body))
};

struct RelayReply {
  std::uint64_t channel = 0;
  std::uint16_t type = 0;
  std::uint64_t request = 0;
  Bytes body;
  GANTRY_FIELDS(FIELD(1, channel), FIELD(2, type), FIELD(3, request), FIELD(4, body))
};

// A client's message that came over the unix socket of a login node (controller.login_nodes). The
// node tells which user sent it, as reported by the kernel. Answered by RelayReply.
struct UserRelay {
  Uid uid{};
  std::uint64_t channel = 0;  // the node's number for the connection
  std::uint16_t type = 0;     // message number of body
  std::uint64_t request = 0;
  Bytes body;
  GANTRY_FIELDS(FIELD(1, uid), FIELD(2, channel), FIELD(3, type), FIELD(4, request), FIELD(5, body))
};

// Connections to that socket have closed: ctld drops them and answers no earlier requests on them.
// If `answer` is set, it confirms each with a RelayReply of type kRelayClosed.
struct UsersGone {
  std::vector<std::uint64_t> channels;
  bool answer = false;
  GANTRY_FIELDS(FIELD(1, channels), FIELD(2, answer))
};

struct FetchLog {  // ctld to node
  std::uint64_t ticket = 0;
  std::string path;  // absolute, expanded by ctld for (job, node)
  Owner owner;       // read as this user
  std::uint64_t offset = 0;
  std::uint32_t max_bytes = 0;
  std::vector<StorageMount> storage{};  // of the site's storage, only what lies below these
  GANTRY_FIELDS(FIELD(1, ticket), FIELD(2, path), FIELD(3, owner), FIELD(4, offset),
                FIELD(5, max_bytes), FIELD(14, storage))
};

struct FetchLogReply {
  std::uint64_t ticket = 0;
  Bytes data;
  std::string error;  // "" = fine
  GANTRY_FIELDS(FIELD(1, ticket), FIELD(2, data), FIELD(3, error))
};

}  // namespace gantry::proto
