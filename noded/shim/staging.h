// --stage-in and --stage-out: copies between the tenant's part of an object store and the job's
// files, by rclone, with the rights of the job's user and the keys of the tenant, in the job's
// cgroup: it counts to the job and has its limits. The job sees neither the program nor the keys.
#pragma once

#include "common/result.h"
#include "noded/shim/child.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// Call these in the shim's own mounts, where the site's storage is hidden. Error not_found: there
// is no such key, or the user's path does not exist.
Result<void> stage_in(const Shim& shim, Signals& signals);
Result<void> stage_out(const Shim& shim, Signals& signals);

// The keys in the content of a secret: "ACCESS:SECRET", both on separate lines, or a file in AWS's
// format (aws_access_key_id = ...).
struct StoreKeys {
  std::string access, secret, session;  // session: "" = none
};
Result<StoreKeys> read_keys(std::string_view content);

}  // namespace gantry::runtime
