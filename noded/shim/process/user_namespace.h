// The user namespace of a container, made before the container.
//
// The kernel counts inotify instances, queued signals, timers and message queues of a namespace
// also to the user who made the namespace. If root made it, one job could use up what root and all
// other jobs need. So each job's namespace is made by a user id of its own. No other process has
// that id: it would have all capabilities in the namespace.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/types.h"
#include "noded/shim/rootfs/oci_config.h"

namespace gantry::runtime {

// Host ids reserved for this. A job gets the first one plus the last 20 bits of its job id.
inline constexpr std::uint32_t kNamespaceUidBase = 0x70100000;
inline constexpr std::uint32_t kNamespaceUids = 1u << 20;

// A process that holds the namespace open, until this object ends it.
class UserNamespace {
 public:
  // runtime_failed: the kernel does not allow the namespace, or not these mappings.
  static Result<UserNamespace> make(JobId job, const std::vector<IdRange>& uids,
                                    const std::vector<IdRange>& gids);
  UserNamespace(UserNamespace&& other) noexcept;
  UserNamespace& operator=(UserNamespace&&) = delete;
  ~UserNamespace();
  [[nodiscard]] std::string path() const;  // its path in the host's /proc, for the runtime

 private:
  explicit UserNamespace(int pid) : pid_(pid) {}
  int pid_;
};

}  // namespace gantry::runtime
