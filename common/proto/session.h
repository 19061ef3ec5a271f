// Messages of a session: versions, identity, errors. Sent first on every connection.
//
// Every message travels as two frames: a 12-byte header (u16 protocol, u16 message number,
// u64 request id, little endian; common/net/header.h) and the msgpack body. A reply carries the
// request's id. Any request may be answered by ErrorReply.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

inline constexpr std::uint16_t kProtocolVersion = 1;  // version of this build
inline constexpr std::uint16_t kOldestProtocol = 1;   // oldest version that ctld still accepts

// First message of a client or node. ctld refuses unknown versions with version_mismatch.
struct Hello {
  std::uint16_t protocol = kProtocolVersion;
  std::string program;  // "gbatch 0.1.0"
  GANTRY_FIELDS(FIELD(1, protocol), FIELD(2, program))
};

// First message on the unix socket of a login node. The node refuses a client that means another
// controller than its own; otherwise it answers only if nothing else was answered for a while (Ok).
struct SocketHello {
  std::string controller;  // the public key of the client's controller, Z85
  GANTRY_FIELDS(FIELD(1, controller))
};

struct HelloReply {
  std::uint16_t protocol = 0;
  std::string cluster;
  std::string version;
  Epoch epoch{};
  Instant now{};  // cluster time
  GANTRY_FIELDS(FIELD(1, protocol), FIELD(2, cluster), FIELD(3, version), FIELD(4, epoch),
                FIELD(5, now))
};

enum class AuthMethod : std::uint8_t { munge = 1, key = 2, token = 3 };
GANTRY_NAMES(AuthMethod, {munge, "munge"}, {key, "key"}, {token, "token"})

// Proves who a client is. The credential covers the CURVE public key of this connection; a token
// does not, so whoever has it can act for its user. AuthReply answers only if want_reply is set. A
// refusal is always answered, and every later request of the connection then fails with
// unauthenticated.
struct Authenticate {
  AuthMethod method = AuthMethod::munge;
  Bytes credential;  // munge: the encoded credential; key: see common/auth/registered_key.h;
                     // token: see common/auth/token.h
  bool want_reply = false;
  GANTRY_FIELDS(FIELD(1, method), FIELD(2, credential), FIELD(3, want_reply))
};

enum class Role : std::uint8_t { user = 1, admin = 2 };  // admin: platform admin
GANTRY_NAMES(Role, {user, "user"}, {admin, "platform-admin"})

struct AuthReply {
  Uid uid{};
  std::string user;
  Role role = Role::user;
  GANTRY_FIELDS(FIELD(1, uid), FIELD(2, user), FIELD(3, role))
};

struct ErrorReply {
  std::uint16_t code = 0;  // ErrorCode
  std::string message;
  GANTRY_FIELDS(FIELD(1, code), FIELD(2, message))
};

struct Ok {
  GANTRY_FIELDS()
};

struct Ping {
  GANTRY_FIELDS()
};

struct PingReply {
  std::string cluster;
  std::string version;
  Epoch epoch{};
  Instant now{};
  Instant started{};
  std::uint64_t jobs_queued = 0;  // array tasks counted one by one
  std::uint64_t jobs_active = 0;
  std::uint32_t nodes_up = 0;
  std::uint32_t nodes = 0;
  // Why the controller continues with its old configuration; "" = it does not.
  std::string config_problem;
  GANTRY_FIELDS(FIELD(1, cluster), FIELD(2, version), FIELD(3, epoch), FIELD(4, now),
                FIELD(5, started), FIELD(6, jobs_queued), FIELD(7, jobs_active), FIELD(8, nodes_up),
                FIELD(9, nodes), FIELD(10, config_problem))
};

// Makes the controller read gantry.yaml again. It restarts in its own process, and the nodes'
// daemons do likewise; jobs continue. Ok means that the file is valid; `started` or
// `config_problem` of PingReply then has the result. For administrators.
struct Reconfigure {
  GANTRY_FIELDS()
};

// The audience of identity tokens that every service takes from tenants that may call it.
inline constexpr std::string_view kAllServices = "gantry-services";

// Asks for a token for GANTRY_TOKEN. Users get tokens for themselves, administrators for anyone.
// With an audience, for an identity token that gates accept: it states who the asker is, for a
// tenant to which the asker may submit, and gives no rights at the controller.
struct MakeToken {
  std::string user;     // "" = the asker
  Duration lifetime{};  // 1 s to controller.max_token_lifetime; 0 = 30 minutes
  // proto::kAllServices or the name of a service; "" = none. Its lifetime is at most
  // controller.identity_lifetime.
  std::string audience{};
  std::string
      tenant{};  // lifetime of an identity token; "" = the only tenant that the asker may submit to
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, lifetime), FIELD(3, audience), FIELD(4, tenant))
};

struct TokenMade {
  std::string token;
  std::string user;
  Instant expires{};
  std::string tenant{};  // of an identity token
  GANTRY_FIELDS(FIELD(1, token), FIELD(2, user), FIELD(3, expires), FIELD(4, tenant))
};

}  // namespace gantry::proto
