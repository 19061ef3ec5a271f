// Identity by MUNGE: the operating system's uid and gid, vouched for by the local munged. The
// credential covers the CURVE public key of the session (its payload), so it is worthless on any
// other connection. munged refuses expired, rewound and replayed credentials.
//
// Both calls talk to munged over a unix socket and block for a fraction of a millisecond, longer if
// it is overloaded; they may be used from several threads at once.
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
  int lifetime_seconds = 0;  // of a credential; 0 = munged's default (300)
};

struct MungeIdentity {
  Uid uid{};
  Gid gid{};
};

// unavailable: munged does not answer.
Result<Bytes> munge_encode(const net::PublicKey& session, const MungeOptions& options = {});

// unauthenticated: expired, replayed, from another munge realm, or made for another session.
Result<MungeIdentity> munge_decode(std::string_view credential, const net::PublicKey& session,
                                   const MungeOptions& options = {});

}  // namespace gantry::auth
