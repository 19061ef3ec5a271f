// A child of one of root's processes that has become a user altogether (become_user()), does one
// piece of work, and reports over a socket. Everything that the shim does with paths that a user
// named goes this way: opening files (noded/shim/as_user.h) and reading images (noded/image).
//
// The child sees the mounts at the time when it was made, and everything that its function
// captures. Of its parent's descriptors it keeps only the standard ones, its end of the socket and
// those that it is told to keep. The parent must have only one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/placement.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// Turns a child of a root process completely into a user: all ids, the user's groups, no capability
// in any set, and no way to gain one. Changing only the fsuid would not be enough: uid 0 and the
// capabilities would remain, and much of /proc, /sys and the devices checks those.

// It makes only system calls and allocates nothing, so a child of a process with many threads may
// call it. If the process is not root, its ids stay as they are. Afterwards only root can trace the
// process or read its memory and descriptors, and it ends with its parent. Returns nullptr on
// success; otherwise what failed (errno is set), and the process must not continue.
const char* become_user(uid_t uid, gid_t gid, const gid_t* groups, std::size_t count);

// wait() returns this if the process could not become the user, and did nothing.
inline constexpr int kNotTheUser = 125;

class UserChild {
 public:
  // A stream, or packets of which each may carry one descriptor.
  enum class Channel { bytes, messages };
  // Runs in the child, as the user; the return value is the child's exit status.
  using Work = std::function<int(const Fd& parent)>;

  static Result<UserChild> start(const Owner& owner, Channel channel, const std::vector<int>& keep,
                                 const Work& work);
  UserChild(UserChild&& o) noexcept
      : pid_(o.pid_), ended_(std::move(o.ended_)), socket_(std::move(o.socket_)) {
    o.pid_ = -1;
  }
  UserChild& operator=(UserChild&&) = delete;
  // Kills the child. If it hangs on a dead file server, whoever reaps the parent's children reaps
  // it.
  ~UserChild();

  [[nodiscard]] const Fd& socket() const { return socket_; }
  // Call it after the end of the stream. Returns the exit status, or -1 if a signal ended the child
  // or it does not end.
  int wait();

 private:
  UserChild() = default;
  int pid_ = -1;
  Fd ended_;  // pidfd of the child
  Fd socket_;
};

// Messages that carry one descriptor, for example between noded and the shims' template. The socket
// is a SEQPACKET.

inline constexpr std::size_t kMaxPassedBytes = 4096;

// With fd -1, no descriptor is sent. Returns false if the other end is gone, or nothing could be
// sent.
bool pass(const Fd& socket, std::string_view bytes, int fd);

struct Passed {
  std::string bytes;  // "" = the other end is gone
  Fd fd;
};
Passed take_passed(const Fd& socket);  // waits for a message

}  // namespace gantry::runtime
