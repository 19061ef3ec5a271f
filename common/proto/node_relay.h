// Messages that a node carries for others: requests from inside jobs, requests of the users of its
// machine, and output files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/proto/node_report.h"

namespace gantry::proto {

// A client's message from inside a job, brought by its node. ctld checks that the attempt is placed
// on that node, and treats the message as sent by the job's owner with role user. Answered by
// RelayReply. When a channel closes, the node says so with type kRelayClosed and no body, and ctld
// answers in the same way: it forgets the channel, and answers nothing that was asked on it before.
inline constexpr std::uint16_t kRelayClosed = 0;

struct NodeRelay {
  AttemptKey key;
  std::uint64_t channel = 0;  // the node's number for the connection
  std::uint16_t type = 0;     // message number of body
  std::uint64_t request = 0;
  Bytes body;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "channel", s.channel);
    v(3, "type", s.type);
    v(4, "request", s.request);
    v(5, "body", s.body);
  }
};

struct RelayReply {
  std::uint64_t channel = 0;
  std::uint16_t type = 0;
  std::uint64_t request = 0;
  Bytes body;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "channel", s.channel);
    v(2, "type", s.type);
    v(3, "request", s.request);
    v(4, "body", s.body);
  }
};

// A client's message that came over the unix socket of a login node (controller.login_nodes). The
// node says which user sent it, because the kernel told it. Answered by RelayReply.
struct UserRelay {
  Uid uid{};
  std::uint64_t channel = 0;  // the node's number for the connection
  std::uint16_t type = 0;     // message number of body
  std::uint64_t request = 0;
  Bytes body;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "uid", s.uid);
    v(2, "channel", s.channel);
    v(3, "type", s.type);
    v(4, "request", s.request);
    v(5, "body", s.body);
  }
};

// Connections to that socket have closed: ctld forgets them and answers nothing that was asked on
// them before. If `answer` is set, it says so for each with a RelayReply of type kRelayClosed.
struct UsersGone {
  std::vector<std::uint64_t> channels;
  bool answer = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "channels", s.channels);
    v(2, "answer", s.answer);
  }
};

struct FetchLog {  // ctld to node
  std::uint64_t ticket = 0;
  std::string path;  // absolute, expanded by ctld for (job, node)
  Owner owner;       // read as this user
  std::uint64_t offset = 0;
  std::uint32_t max_bytes = 0;
  std::vector<StorageMount> storage{};  // of the site's storage, only what lies below these
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "ticket", s.ticket);
    v(2, "path", s.path);
    v(3, "owner", s.owner);
    v(4, "offset", s.offset);
    v(5, "max_bytes", s.max_bytes);
    v(14, "storage", s.storage);
  }
};

struct FetchLogReply {
  std::uint64_t ticket = 0;
  Bytes data;
  std::string error;  // "" = fine
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "ticket", s.ticket);
    v(2, "data", s.data);
    v(3, "error", s.error);
  }
};

}  // namespace gantry::proto
