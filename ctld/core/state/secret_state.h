// Secrets of tenants, as the controller keeps them: sealed, with a key that is not in the store
// (ctld/secrets). Only apply() changes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/proto/secrets.h"
#include "common/types.h"

namespace gantry::core {

inline constexpr std::size_t kMostSecrets = 128;  // secrets of one tenant
inline constexpr std::size_t kMostSealedBytes =
    4u << 20;                                         // bytes of one tenant's secrets, all versions
inline constexpr std::size_t kMostSecretsOfJob = 32;  // secrets that one job may ask for
inline constexpr std::size_t kMostAudiences = 8;      // audiences for which one job may ask tokens
inline constexpr std::size_t kMostAudienceBytes = 256;  // bytes of a secret's name
inline constexpr std::string_view kTokenPrefix =
    "identity-";  // prefix of the names of files with tokens

struct SealedVersion : proto::SecretVersion {
  Bytes sealed;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    proto::SecretVersion::fields(s, v);
    v(6, "sealed", s.sealed);
  }
};

struct SecretState {
  std::vector<SealedVersion> versions;  // the newest last; never empty
  GANTRY_FIELDS(FIELD(1, versions))
  [[nodiscard]] const SealedVersion* find(std::uint32_t number) const {
    for (const SealedVersion& one : versions)
      if (one.number == number) return &one;
    return nullptr;
  }
};

struct TenantSecrets {
  std::map<std::string, SecretState> by_name;
  // The greatest version number that was removed together with its secret. A secret of this name
  // that is made later starts above it, so that no number stands for two contents.
  std::uint32_t removed = 0;
};

struct RemovedRecord {
  std::uint32_t removed = 0;
  GANTRY_FIELDS(FIELD(1, removed))
};

struct SecretTable {
  std::map<std::string, TenantSecrets> tenants;
  // Derived: the secrets that known jobs ask for, by the id of the job or of its array.
  std::unordered_map<JobId, std::vector<SecretUse>> wanted;

  [[nodiscard]] const SecretState* find(const std::string& tenant, const std::string& name) const {
    const auto it = tenants.find(tenant);
    if (it == tenants.end()) return nullptr;
    const auto at = it->second.by_name.find(name);
    return at == it->second.by_name.end() ? nullptr : &at->second;
  }
};

}  // namespace gantry::core
