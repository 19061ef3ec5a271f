// A child that has become a user altogether (become_user.h) and says something through a pipe: what
// an image needs of a user's files comes in that way, as bytes, and no descriptor of the user's.
#pragma once

#include "common/placement.h"
#include "common/result.h"
#include "noded/runtime/files.h"

namespace gantry::runtime {

// A child of this process, which has one thread. Its pipe is read here; it ends with its owner.
class UserReader {
 public:
  UserReader() = default;
  UserReader(UserReader&& o) noexcept : pid_(o.pid_), pipe_(std::move(o.pipe_)) { o.pid_ = -1; }
  UserReader& operator=(UserReader&&) = delete;
  ~UserReader();  // kills and reaps it

  // Forks; `work` runs in the child, as the user, with the pipe's other end, and its value is
  // the child's exit status.
  template <class Work>
  static Result<UserReader> start(const Owner& owner, Work&& work) {
    UserReader child;
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
