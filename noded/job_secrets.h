// Secrets and identity tokens of the jobs on this node: written when an attempt begins, renewed
// while it runs, gone with it.
//
// Contents pass through here from the controller's order into files of a tmpfs
// (noded/runtime/secret_files.h). Nothing keeps them in between: not the order to the shim, not
// this class. After a restart of the daemon the files are still there; tokens are asked for at
// once, because nobody knows when they end.
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

  // Writes what the order carries, wipes it there, and names the directory in the request. Nothing
  // happens if it carries none.
  Result<void> begin(proto::Launch& launch, runtime::LaunchRequest& request);
  // The attempt runs on after a restart of the daemon.
  void adopt(const runtime::LaunchRequest& request);
  void renew(proto::IdentityTokens& answer);
  void end(const AttemptKey& key);
  // Removes what belongs to no attempt that begin() or adopt() has named.
  void sweep();

 private:
  struct Held {
    Owner owner;
    bool has_tokens = false;
    Duration renew_at{};  // by the clock that nobody sets; only with tokens
  };
  // Takes the keys to the object store out of the order: they are no file of the job.
  Result<void> keep_store_keys(proto::Launch& launch, const runtime::LaunchRequest& request);
  void look();
  void set_timer();

  loop::Loop& loop_;
  std::string state_dir_;
  std::function<void(const AttemptKey&)> due_;
  const Logger& log_;
  std::map<AttemptKey, Held> held_;
  bool looks_ = false;  // the timer runs
  loop::Watch timer_;
};

}  // namespace gantry::node
