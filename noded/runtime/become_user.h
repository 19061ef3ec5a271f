// A child process that becomes a user altogether: all ids, groups, no capabilities, and no way
// back. What is done in a user's name by a name that the user can change is done there, so that
// every check of the kernel, also those of /proc, /sys and devices, sees the user.
#pragma once

#include "common/placement.h"
#include "common/result.h"
#include "noded/runtime/files.h"

namespace gantry::runtime {

// In a child of its own. False with errno when it could not be done: the child must end then. A
// process that is not root already is who it has to be.
bool become_user(const Owner& owner);

// A child of this process, which has one thread. Its pipe is read here; it ends with its owner.
class UserChild {
 public:
  UserChild() = default;
  UserChild(UserChild&& o) noexcept : pid_(o.pid_), pipe_(std::move(o.pipe_)) { o.pid_ = -1; }
  UserChild& operator=(UserChild&&) = delete;
  ~UserChild();  // kills and reaps it

  // Forks; `work` runs in the child, as the user, with the pipe's other end, and its value is
  // the child's exit status.
  template <class Work>
  static Result<UserChild> start(const Owner& owner, Work&& work) {
    UserChild child;
    Fd writer;
    if (auto r = child.split(owner, writer); !r) return tl::unexpected(r.error());
    if (child.pid_ == 0) leave(work(writer));
    return child;
  }
  [[nodiscard]] const Fd& pipe() const { return pipe_; }
  // After the pipe's end: the exit status, or -1 when a signal ended it.
  int wait();

 private:
  Result<void> split(const Owner& owner, Fd& writer);
  [[noreturn]] static void leave(int status);
  int pid_ = -1;
  Fd pipe_;
};

}  // namespace gantry::runtime
