// Shell: what every part of the controller outside of the core may use. Server owns it all.
#pragma once

#include <functional>

#include "common/log/log.h"
#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "config/config.h"
#include "ctld/audit_requests.h"
#include "ctld/core/core.h"

namespace gantry::ctld {

struct Shell {
  const Config& config;
  const Logger& log;
  core::Core& core;
  loop::ClusterClock& clock;
  loop::Loop& loop;
  AuditRequests& audit;
  // Gives the core one input. Its results are sent at the end of the turn.
  std::function<void(core::Input)> step;
  // Stops the process: acknowledged changes are safe, and no more can be made.
  std::function<void(const Error&)> fatal;

  // Returns false if the result is an error; the process then ends.
  [[nodiscard]] bool kept(const Result<void>& done) const {
    if (!done) fatal(done.error());
    return done.has_value();
  }
};

}  // namespace gantry::ctld
