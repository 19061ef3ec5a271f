// A child of one of root's processes that has become a user altogether (become_user.h), does one
// piece of work, and says what came of it over a socket. Everything that the shim does with what a
// user names goes this way: opening files (noded/shim/as_user.h) and reading images (noded/image).
//
// The child sees the mounts of the moment at which it is made, and everything that its work
// captures. It has no descriptor of its parent's but the standard ones, its end of the socket and
// those that it is given to keep. The parent has to have one thread.
#pragma once

#include <functional>
#include <vector>

#include "common/job/placement.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// Of wait(): the process could not become the user, and has done nothing.
inline constexpr int kNotTheUser = 125;

class UserChild {
 public:
  enum class Channel { bytes, messages };  // a stream, or packets that may carry a descriptor each
  // Runs in the child, as the user; its value is the child's exit status.
  using Work = std::function<int(const Fd& parent)>;

  static Result<UserChild> start(const Owner& owner, Channel channel, const std::vector<int>& keep,
                                 const Work& work);
  UserChild(UserChild&& o) noexcept
      : pid_(o.pid_), ended_(std::move(o.ended_)), socket_(std::move(o.socket_)) {
    o.pid_ = -1;
  }
  UserChild& operator=(UserChild&&) = delete;
  ~UserChild();  // kills it. One that hangs in a dead file server is left to who reaps the parent

  [[nodiscard]] const Fd& socket() const { return socket_; }
  // After the socket's end: the exit status, or -1 when a signal ended it or it does not end.
  int wait();

 private:
  UserChild() = default;
  int pid_ = -1;
  Fd ended_;  // a pidfd
  Fd socket_;
};

}  // namespace gantry::runtime
