// Looks at the checkpoint files of running jobs (--checkpoint-file): when was each last written or
// touched? In a short-lived child process with the ids of the jobs' user, one for all of a user's
// files, so that neither a permission nor a slow file server is ever ours; see log_reader.h.
//
// Looks every kLookEvery; a look that takes longer than kLookLimit is given up, at most kMaxLooks
// run at a time. Only regular files count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/loop/loop.h"
#include "common/proto/node_report.h"
#include "noded/machine/files.h"

namespace gantry::node {

inline constexpr Duration kLookEvery = seconds(10);
inline constexpr Duration kLookLimit = seconds(8);
inline constexpr std::size_t kMaxLooks = 8;

class CheckpointWatch {
 public:
  explicit CheckpointWatch(loop::Loop& loop);
  ~CheckpointWatch();
  CheckpointWatch(const CheckpointWatch&) = delete;
  CheckpointWatch& operator=(const CheckpointWatch&) = delete;

  void watch(const proto::AttemptKey& key, const Owner& owner, const std::string& path);
  void drop(const proto::AttemptKey& key);
  // Of those that have been written: when, by the clock that says `now` at this moment.
  [[nodiscard]] std::vector<proto::AttemptCheckpoint> newest(Instant now) const;

 private:
  struct Watched {
    Owner owner;
    std::string path;
    std::optional<Instant> written;  // wall clock
  };
  struct Look {
    std::vector<proto::AttemptKey> keys;
    std::vector<std::string> paths;
    Fd times;
    pid_t pid = 0;
    loop::Watch ended, limit;
  };
  void look();
  void start(Uid user);
  void finished(std::uint64_t number);

  loop::Loop& loop_;
  std::map<proto::AttemptKey, Watched> watched_;
  std::map<std::uint64_t, Look> looks_;
  std::uint64_t next_ = 1;
  Uid last_user_{};  // who was looked for last: the others come first
  loop::Watch timer_;
};

}  // namespace gantry::node
