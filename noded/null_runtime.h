// A runtime that runs nothing: an attempt starts at once and exits with 0 after 0 s; a held one
// does so when it is released, and an allocation when it is told to end. Nothing is kept on disk.
//
// It is for benchmarks of everything else, and is used only if the configuration names it alone,
// `runtimes: [none]`. Every job shows that in layers_off.
#pragma once

#include <map>
#include <memory>

#include "common/loop/loop.h"
#include "common/net/secure_stream.h"
#include "common/net/socket.h"
#include "noded/seam.h"
#include "noded/steps/step_service.h"

namespace gantry::node {

class NullRuntime final : public AttemptRuntime {
 public:
  [[nodiscard]] std::string name() const override { return "none"; }
  [[nodiscard]] std::vector<std::string> layers_off() const override {
    return {"everything: runtime \"none\" runs no job, each ends at once as if it had"};
  }
  std::vector<Recovered> recover() override { return {}; }
  void act(Instant now, Action&& action, std::vector<Input>& events) override;
  [[nodiscard]] int descriptor() const override { return -1; }
  void poll(Instant, std::vector<Input>&) override {}

  // The owner of an allocation, which lives until it is ended.
  [[nodiscard]] std::optional<Owner> owner_of(const AttemptKey& key) const;

 private:
  struct Waiting {
    bool holder = false;
    Owner owner;
  };
  std::map<AttemptKey, Waiting> waiting_;  // held attempts, and allocations
};

// Steps on a node that runs nothing: each task succeeds as soon as it is launched, and the step's
// grun learns that over its stream as from a real node. Only for benchmarks, like null_runtime.h.
class NullSteps final : public StepRuntime {
 public:
  NullSteps(const NullRuntime& attempts, loop::Loop& loop) : attempts_(attempts), loop_(loop) {}

  [[nodiscard]] std::optional<Owner> owner_of(const AttemptKey& key) const override {
    return attempts_.owner_of(key);
  }
  Result<void> begin_step(const runtime::StepRequest& request) override;
  Result<void> attach_step(const runtime::StepAttachment&) override {
    return fail(ErrorCode::not_found, "the step has ended: its tasks end when they begin");
  }

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
