// A runtime that runs nothing: an attempt starts at once and exits 0 after 0 s; a held one does so
// when it is released, and the holder of an allocation when it is told to end. Nothing is kept on
// disk.
//
// It is for measuring everything else, and is used only if the configuration names it alone,
// `runtimes: [none]`. Every job shows that through layers_off.
#pragma once

#include <map>

#include "noded/seam.h"

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

  // The owner of a holder, which lives until it is ended.
  [[nodiscard]] std::optional<Owner> owner_of(const AttemptKey& key) const;

 private:
  struct Waiting {
    bool holder = false;
    Owner owner;
  };
  std::map<AttemptKey, Waiting> waiting_;  // held attempts, and holders
};

}  // namespace gantry::node
