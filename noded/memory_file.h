// Keeps what a node daemon must remember over a restart, besides its attempts: the newest
// controller and the highest job id that it was told, and under fencing when that controller was
// last known to hear it. The files are in the state directory:
//
//   memory.msgpack   Memory without the contact; durable through a power cut
//   contact          under fencing, for the shims as well (noded/runtime/contact.h); outlives the
//                    daemon, not the machine
//
// A MemoryFile holds the lock of the state directory for as long as it exists, so each directory
// has only one daemon.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/core/core.h"
#include "noded/machine/files.h"

namespace gantry::node {

class MemoryFile {
 public:
  // Makes the directory. wrong_state: another daemon uses it.
  static Result<MemoryFile> open(const std::string& state_dir);

  [[nodiscard]] const Memory& memory() const { return memory_; }
  Result<void> remember(const RememberEpoch& what);
  Result<void> remember(const RememberJob& what);
  Result<void> remember(const RememberContact& what, Instant now);

 private:
  MemoryFile() = default;
  Result<void> write();
  void drop_contact();
  Fd directory_;
  Fd lock_;
  std::string path_;
  Memory memory_;
};

}  // namespace gantry::node
