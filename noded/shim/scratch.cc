#include "noded/shim/scratch.h"

#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "noded/runtime/contact.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr Duration kLookApart = seconds(5);
constexpr int kShare = 20;  // at most one part in so many of a core goes into looking

}  // namespace

Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch <= 0) return std::string();
  if (setup.scratch_dir.empty())
    return fail(ErrorCode::never_fits, "scratch space was asked for, but this node has none");
  const auto path = scratch_path(setup, request.key);
  // What is there already was made by a stranger, where everybody may make files, or by a shim of
  // this attempt that did not come far. Nothing in it may be this job's.
  remove_tree(path);
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(ErrorCode::runtime_failed, path);
  if (!setup.rootless &&
      ::lchown(path.c_str(), request.owner.uid.value(), request.owner.gid.value()) != 0)
    return fail_errno(ErrorCode::runtime_failed, path);
  return path;
}

void remove_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch > 0 && !setup.scratch_dir.empty())
    remove_tree(scratch_path(setup, request.key));
}

std::int64_t scratch_used(const std::string& directory) {
  std::string path = directory;
  char* const roots[] = {path.data(), nullptr};
  FTS* tree = ::fts_open(roots, FTS_PHYSICAL | FTS_XDEV, nullptr);
  if (tree == nullptr) return 0;
  std::int64_t blocks = 0;
  std::set<ino_t> linked;
  while (const FTSENT* entry = ::fts_read(tree)) {
    if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS) continue;
    const struct stat& file = *entry->fts_statp;
    if (!S_ISDIR(file.st_mode) && file.st_nlink > 1 && !linked.insert(file.st_ino).second) continue;
    blocks += file.st_blocks;
  }
  ::fts_close(tree);
  return blocks * 512;
}

ScratchLimit::ScratchLimit(const NodeSetup& setup, const LaunchRequest& request)
    : limit_(setup.scratch_dir.empty() ? 0 : request.scratch) {
  if (limit_ <= 0) return;
  directory_ = scratch_path(setup, request.key);
  next_ = since_boot() + kLookApart;
}

bool ScratchLimit::is_over() {
  if (limit_ <= 0) return false;
  if (used_ > limit_) return true;  // it is to end, whatever it deletes now
  const Duration now = since_boot();
  if (now < next_) return false;
  used_ = scratch_used(directory_);
  const Duration took = since_boot() - now;
  next_ = now + took + std::max(kLookApart, took * kShare);
  return used_ > limit_;
}

int ScratchLimit::pause() const {
  if (limit_ <= 0) return -1;
  return static_cast<int>(std::max<std::int64_t>(1, (next_ - since_boot()).us / 1000 + 1));
}

}  // namespace gantry::runtime
