// Mount system calls (the descriptor-based ones of Linux 5.2 and 5.12) as Results.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// What a bind mount may be used for. Set-uid bits and device nodes never work in any of them.
enum class Access { read_only, read_write };

// A private copy of the mount tree at `source` (a descriptor), detached, with those limits.
Result<Fd> clone_tree(const Fd& source, Access access, bool recursive, bool no_exec = false);
Result<void> attach_tree(const Fd& tree, const Fd& target);
Result<void> attach_tree(const Fd& tree, const std::string& target);  // trusted paths only

Result<void> mount_tmpfs(const std::string& target, const std::string& options);

// Resolves `path` with `root` as "/", links included or refused; cannot leave it.
enum class Links { followed, refused };
Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags,
                        Links links = Links::followed);
// The same, making what is missing (directories, or a file at the end) in directories of which
// `may_make` says yes; wrong_state at the first of which it says no. Fails where read-only.
using MayMake = std::function<bool(const Fd& directory)>;
Result<Fd> make_in_root(const Fd& root, const std::string& path, bool directory,
                        const MayMake& may_make);

// A name in mountinfo, where a blank is \040, and so on.
std::string unescaped_mount_name(std::string_view text);

}  // namespace gantry::runtime
