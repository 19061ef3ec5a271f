// The files with secrets and identity tokens of attempts. They are on no disk: <state>/secrets is a
// tmpfs, made when the first job needs it, without swap if the kernel supports that. It survives
// the daemon, and has a directory for each attempt, which the job sees, read-only, as
// kSecretsInside.
//
//   <state>/secrets/              mode 0700, root's
//   <state>/secrets/7.1/          mode 0500, the user's
//   <state>/secrets/7.1/token     mode 0400, the user's
//
// Only the daemon writes here; the job's shim removes the directory when the job has ended. Names
// of files come from users: they are checked again here, and nothing follows a link.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_spec.h"
#include "common/proto/node_report.h"
#include "common/result.h"

namespace gantry::runtime {

using proto::AttemptKey;

inline constexpr const char* kSecretsInside = "/run/secrets";

struct SecretText {
  std::string_view file, content;
};

// Makes the directory of the attempt with these files, and returns its path.
Result<std::string> write_secrets(const std::string& state_dir, const AttemptKey& key,
                                  const Owner& owner, const std::vector<SecretText>& files);
// Replaces one file, or adds it: readers see either the whole old file or the whole new one.
Result<void> replace_secret(const std::string& state_dir, const AttemptKey& key, const Owner& owner,
                            const SecretText& file);
void remove_secrets(const std::string& state_dir, const AttemptKey& key);  // including the keys

// The keys to the tenant's object store, for the shim that stages the attempt's files. The job does
// not see this file, <state>/secrets/.store.7.1; mode 0400, root's.
Result<void> write_store_keys(const std::string& state_dir, const AttemptKey& key,
                              std::string_view content);
Result<std::string> read_store_keys(const std::string& state_dir, const AttemptKey& key);

// Attempts that have a directory or keys there.
std::vector<AttemptKey> attempts_with_secrets(const std::string& state_dir);
// Unmounts the tmpfs, with everything in it.
void unmount_secrets(const std::string& state_dir);

}  // namespace gantry::runtime
