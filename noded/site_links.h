// Links that the site's CNI plugins make for each job (noded/network/cni.h), for the daemon's loop.
// The programs may take long, so they run on a separate thread, one after the other. Results are
// reported on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "noded/gpu/driver_thread.h"
#include "noded/network/cni.h"

namespace gantry::node {

class SiteLinks {
 public:
  using Done = std::function<void(Result<void>&&)>;
  // An attempt and the file that holds its namespace.
  using Place = std::pair<proto::AttemptKey, std::string>;

  SiteLinks(network::Cni::Options options, loop::Loop& loop, const Logger& log);
  ~SiteLinks();
  SiteLinks(const SiteLinks&) = delete;
  SiteLinks& operator=(const SiteLinks&) = delete;

  // For attempts of earlier daemons: checks those that run, and removes what is left of others.
  void adopt(std::vector<Place> running);
  void add(const Place& place, Done done);
  // If a plugin refuses, a line is logged, and the next daemon tries again.
  void remove(const Place& place, std::function<void()> done);
  struct Look {
    std::vector<std::string> addresses;
    std::string wrong;  // "" = the plugins find everything as they made it
  };
  void look(const Place& place, std::function<void(Look&&)> done);

 private:
  struct Work;
  std::shared_ptr<Work> work_;
  std::shared_ptr<gpu::Outlet> outlet_;
  gpu::DriverThread thread_;
};

}  // namespace gantry::node
