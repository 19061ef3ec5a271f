// Steps on a node that runs nothing: each task succeeds the moment it is launched, and the step's
// grun hears of that over its stream as from a real node. It is only for benches, as
// null_runtime.h.
#pragma once

#include <map>
#include <memory>

#include "common/loop/loop.h"
#include "common/net/secure_stream.h"
#include "common/net/socket.h"
#include "noded/null_runtime.h"
#include "noded/steps/step_service.h"

namespace gantry::node {

class NullSteps final : public StepRuntime {
 public:
  NullSteps(const NullRuntime& attempts, loop::Loop& loop) : attempts_(attempts), loop_(loop) {}

  [[nodiscard]] std::optional<Owner> owner_of(const AttemptKey& key) const override {
    return attempts_.owner_of(key);
  }
  Result<void> begin_step(const runtime::StepRequest& request) override;
  Result<void> attach_step(const runtime::StepAttachment& attachment) override;

 private:
  struct Stream {
    net::Socket socket;
    net::SecureStream crypt;
    loop::Watch readable;
  };
  void on_readable(std::uint64_t id);

  const NullRuntime& attempts_;
  loop::Loop& loop_;
  std::map<std::uint64_t, std::unique_ptr<Stream>> streams_;
  std::uint64_t next_id_ = 1;
};

}  // namespace gantry::node
