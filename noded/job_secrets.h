// Secrets and identity tokens of the jobs on this node: written when an attempt begins, renewed
// while it runs, removed with it.
//
// Contents pass from the controller's order into files of a tmpfs (noded/runtime/secret_files.h).
// They are kept nowhere else: not in the order to the shim, not in this class. After a restart of
// the daemon the files are still there; tokens are requested at once, because their end is not
// known.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "noded/core/core.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

class JobSecrets {
 public:
  // `due` is called when an attempt needs new tokens.
  JobSecrets(loop::Loop& loop, std::string state_dir, std::function<void(const AttemptKey&)> due,
             const Logger& log);

  // Writes what the order carries, overwrites it there, and puts the directory into the request.
  // Does nothing if the order carries none.
  Result<void> begin(proto::Launch& launch, runtime::LaunchRequest& request);
  // The attempt still runs after a restart of the daemon.
  void adopt(const runtime::LaunchRequest& request);
  void renew(proto::IdentityTokens& answer);
  void end(const AttemptKey& key);
  // Removes files of all attempts that begin() or adopt() has not named.
  void sweep();

 private:
  struct Held {
    Owner owner;
    bool has_tokens = false;
    Duration renew_at{};  // by the monotonic clock; only with tokens
  };
  // Takes the keys to the object store out of the order, because they do not become a file of the
  // job.
  Result<void> keep_store_keys(proto::Launch& launch, const runtime::LaunchRequest& request);
  void look();
  void set_timer();

  loop::Loop& loop_;
  std::string state_dir_;
  std::function<void(const AttemptKey&)> due_;
  const Logger& log_;
  std::map<AttemptKey, Held> held_;
  bool looks_ = false;  // true while the timer runs
  loop::Watch timer_;
};

}  // namespace gantry::node
