// Proves an identity with MUNGE: the local munged vouches for the uid and gid of the operating
// system. The credential covers the CURVE public key of the session (its payload), so it is
// worthless on any other connection. munged refuses expired, rewound and replayed credentials.
//
// Both calls talk to munged over a unix socket and block for a fraction of a millisecond, longer if
// it is overloaded. Several threads may use them at once.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "common/net/keys.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::auth {

struct MungeOptions {
  std::string socket;        // "" = the library's own default
  int lifetime_seconds = 0;  // lifetime of a credential; 0 = munged's default (300)
};

struct MungeIdentity {
  Uid uid{};
  Gid gid{};
};

// The error unavailable means that munged does not answer.
Result<Bytes> munge_encode(const net::PublicKey& session, const MungeOptions& options = {});

// The error unauthenticated means that the credential is expired, replayed, from another munge
// realm, or made for another session.
Result<MungeIdentity> munge_decode(std::string_view credential, const net::PublicKey& session,
                                   const MungeOptions& options = {});

}  // namespace gantry::auth
