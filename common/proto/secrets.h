// Secrets of tenants, and identity tokens of jobs and users.
//
// The content of a secret is in two messages only: SetSecret, from its author, and Launch, to a
// node of a job that uses it. SecretList has everything except the content.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/proto/attempt.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

inline constexpr std::size_t kMaxSecretBytes = 64u << 10;  // bytes of one version's content
inline constexpr std::uint32_t kMaxSecretVersions = 16;    // versions of one secret
inline constexpr std::uint32_t kUsualSecretVersions = 5;   // versions kept by default

// A new version of a secret, which is made if it is not there. It is answered by SecretList.
struct SetSecret {
  std::string tenant;
  std::string name;
  Bytes content;
  std::uint32_t keep = kUsualSecretVersions;  // versions to keep, including the new one
  // The next members are set by the controller: it replaces the content in the message by its
  // number and the sealed form, before anything else sees the message.
  std::uint32_t version = 0;
  Bytes sealed;
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, name), FIELD(3, content), FIELD(4, keep),
                FIELD(5, version), FIELD(6, sealed))
};

struct RemoveSecret {
  std::string tenant;
  std::string name;
  std::uint32_t version = 0;  // 0 = all of it
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, name), FIELD(3, version))
};

struct ListSecrets {
  std::vector<std::string> tenants;  // empty = all that the asker sees
  std::string name;                  // "" = all
  GANTRY_FIELDS(FIELD(1, tenants), FIELD(2, name))
};

struct SecretVersion {
  std::uint32_t number = 0;
  Instant made{};
  std::string by;               // user
  std::optional<Instant> used;  // when a job that gets it was last given its nodes
  JobId used_by{};              // the job that uses it
  GANTRY_FIELDS(FIELD(1, number), FIELD(2, made), FIELD(3, by), FIELD(4, used), FIELD(5, used_by))
};

struct SecretRow {
  std::string tenant;
  std::string name;
  std::vector<SecretVersion> versions;  // the newest last; none: it was removed
  std::uint64_t waiting = 0;            // jobs that name it and have not ended
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, name), FIELD(3, versions), FIELD(4, waiting))
};

struct SecretList {
  std::vector<SecretRow> rows;
  GANTRY_FIELDS(FIELD(1, rows))
};

// ---- to nodes

// The name of the secret with the keys to the object store. No file of a job begins with a dot.
inline constexpr std::string_view kStoreKeys = ".store";

struct SecretFile {  // a file of the job's directory of secrets
  std::string file;
  Bytes content;
  GANTRY_FIELDS(FIELD(1, file), FIELD(2, content))
};

struct IdentityToken {
  std::string audience;
  std::string file;  // name in the directory of secrets
  Bytes token;       // a signed JWT
  Duration lasts{};  // lifetime, from now on
  GANTRY_FIELDS(FIELD(1, audience), FIELD(2, file), FIELD(3, token), FIELD(4, lasts))
};

// A node asks for new tokens for an attempt that runs there, before the old ones end.
struct RenewIdentity {
  AttemptKey key;
  GANTRY_FIELDS(FIELD(1, key))
};

// The answer. It is no order: a node that does not take it asks again.
struct IdentityTokens {
  AttemptKey key;
  std::vector<IdentityToken> tokens;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, tokens))
};

}  // namespace gantry::proto
