#include "noded/shim/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "noded/runtime/job_dir.h"

namespace gantry::runtime {

Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch <= 0) return std::string();
  if (setup.scratch_dir.empty())
    return fail(ErrorCode::never_fits, "scratch space was asked for, but this node has none");
  const auto path = scratch_path(setup, request.key);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(ErrorCode::runtime_failed, path);
  if (!setup.rootless &&
      ::lchown(path.c_str(), request.owner.uid.value(), request.owner.gid.value()) != 0)
    return fail_errno(ErrorCode::runtime_failed, path);
  return path;
}

void remove_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch > 0 && !setup.scratch_dir.empty())
    remove_tree(scratch_path(setup, request.key));
}

}  // namespace gantry::runtime
