// Requests about the controller itself: its options in force, its counters, and the keys that it
// knows. Client to ctld.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/proto/session.h"

namespace gantry::proto {

struct ShowConfig {
  std::optional<std::string> after{};  // a page: options after this name; "" = the first page
  GANTRY_FIELDS(FIELD(1, after))
};

struct ConfigPage {
  static constexpr bool kLeftOutUnset = true;
  bool more = false;
  GANTRY_FIELDS(FIELD(1, more))
};

struct ShowConfigReply {
  std::map<std::string, std::string> values;  // every option with its value in force
  std::optional<ConfigPage> page{};
  GANTRY_FIELDS(FIELD(1, values), FIELD(2, page))
};

// Binds a node's CURVE public key to its name (admin, once per node). Re-enrolment replaces it.
struct EnrollNode {
  std::string node;
  std::string public_key;  // Z85, 40 characters
  // The hash of the token by which the node itself asks; the token is used up by it. "" = none.
  // Only the controller sets it; see UseEnrollToken.
  std::string token_hash{};
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, public_key), FIELD(3, token_hash))
};

// Registers an ed25519 public key that may then act for a user. Users register their own; an admin
// registers keys for anyone.
struct RegisterKey {
  std::string user;
  std::string public_key;  // hex, 64 characters
  bool remove = false;
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, public_key), FIELD(3, remove))
};
// Counters of the controller, for ginfo --stats, benches and metrics.
struct ShowStats {
  bool since_reset = false;  // false: counters since the controller's start
  GANTRY_FIELDS(FIELD(1, since_reset))
};
struct CallCount {
  std::string name;  // name of a message, or of a user
  std::uint64_t count = 0;
  Duration time{};  // total time in the controller's loop
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, count), FIELD(3, time))
};
struct ShowStatsReply {
  std::map<std::string, std::int64_t> values;  // names end in their unit: _total, _us, _bytes
  Instant since{};                             // the counters run from then on
  // Requests since the last reset that were not refused unread, by message and by user. Who does
  // not see everything has only their own in `callers`.
  std::vector<CallCount> calls{}, callers{};
  GANTRY_FIELDS(FIELD(1, values), FIELD(2, since), FIELD(3, calls), FIELD(4, callers))
};
// Resets the counters that ShowStats reports since the reset. Those of the metrics continue.
struct ResetStats {
  GANTRY_FIELDS()
};

// Tells a node to read gantry.yaml again and to restart its daemon with it; its jobs continue. A
// node that is not connected reads the file at its next start.
struct RereadConfig {
  GANTRY_FIELDS()
};

// ---- nodes that enroll themselves
//
// An administrator's command makes a token and sends its hash alone, so that the controller never
// has it. A node daemon shows the token over a connection with its new key, and this key is the
// node's from then on.

// Makes an enrolment token (node, hash, valid), or revokes one (revoke), or revokes a node's key
// (revoke_key). It does exactly one of these, and is answered by EnrollmentList.
struct ChangeEnrollment {
  std::string node;        // the token is for this one alone
  std::string hash;        // hex: BLAKE2b-256 of the token's text
  Duration valid{};        // 1 minute to 30 days
  std::string revoke;      // a token's id, or the name of a node: all of its tokens
  std::string revoke_key;  // a node's name; its daemon is a stranger from then on
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, hash), FIELD(3, valid), FIELD(4, revoke),
                FIELD(5, revoke_key))
};

struct ListEnrollment {
  GANTRY_FIELDS()
};

struct EnrollTokenRow {  // a token that was not used yet
  std::string id;        // the first digits of its hash
  std::string node;
  Instant made{};
  Instant expires{};
  std::string by;  // the user who made it
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, node), FIELD(3, made), FIELD(4, expires), FIELD(5, by))
};

struct EnrolledNodeRow {
  std::string node;
  std::string public_key;  // Z85; "" = it has none
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, public_key))
};

struct EnrollmentList {
  std::vector<EnrollTokenRow> tokens;
  std::vector<EnrolledNodeRow> nodes;
  GANTRY_FIELDS(FIELD(1, tokens), FIELD(2, nodes))
};

// Presents an enrolment token: the key of this connection becomes the node's key. Answered by Ok,
// even if it is the node's key already, so that a node may repeat the request. All refusals have
// the same text, which reveals nothing about existing nodes or tokens.
struct UseEnrollToken {
  std::string node;
  std::string token;  // hex
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, token))
};

// ---- the audit log, for auditors and administrators who are not on the controller's machine; its
// lines are those of common/audit/audit_line.h

inline constexpr std::uint32_t kMostAuditLines = 2'000;  // lines of one page

struct ReadAudit {
  std::uint64_t after = 0;  // only records with a higher number
  std::uint32_t most = 0;   // 0 = kMostAuditLines
  bool newest = false;      // the newest records, instead of the first ones after `after`
  GANTRY_FIELDS(FIELD(1, after), FIELD(2, most), FIELD(3, newest))
};

struct AuditPage {
  std::vector<std::string> lines;  // lines as in the log, in their order
  bool more = false;               // more records follow the last line
  GANTRY_FIELDS(FIELD(1, lines), FIELD(2, more))
};

}  // namespace gantry::proto
