// Looks at the checkpoint files of running jobs (--checkpoint-file) and remembers when each was
// last written. A short-lived child process with the user's ids does that, one process for all
// files of a user. So neither permissions nor a slow file server can stop the daemon; see
// log_reader.h.
//
// It looks every kLookEvery. A look that takes longer than kLookLimit is given up, and at most
// kMaxLooks run at a time. Only regular files count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/loop/loop.h"
#include "common/proto/node_report.h"
#include "noded/machine/files.h"
#include "noded/machine/storage_view.h"

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

  // Below the site's storage only what `view` shows is looked at.
  void watch(const proto::AttemptKey& key, const Owner& owner, const std::string& path,
             runtime::StorageView view);
  void drop(const proto::AttemptKey& key) { watched_.erase(key); }
  // The checkpoints that were written, and when, by the clock whose present time is `now`.
  [[nodiscard]] std::vector<proto::AttemptCheckpoint> newest(Instant now) const;

 private:
  struct Watched {
    Owner owner;
    std::string path;
    runtime::StorageView view;
    std::optional<Instant> written;  // wall clock
  };
  struct Look {
    std::vector<proto::AttemptKey> keys;
    std::vector<std::string> paths;
    std::vector<runtime::StorageView> views;  // what the job sees of the storage, for each path
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
  Uid last_user_{};  // user of the last look: the next round begins with the users after it
  loop::Watch timer_;
};

}  // namespace gantry::node
