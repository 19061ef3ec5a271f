// Makes the orders that tests send to the daemon.
#pragma once

#include "common/auth/users.h"
#include "tests/noded/fake_controller.h"

namespace gantry::test {

inline proto::AttemptKey key(std::uint64_t job) {
  return {JobId{job}, Attempt{1}};
}

inline proto::Launch launch(FakeController& ctld, std::uint64_t job, const std::string& dir,
                            const std::string& script, Uid uid) {
  proto::Launch l;
  l.stamp = ctld.stamp();
  l.key = key(job);
  const auto owner = auth::find_user(uid);
  REQUIRE(owner);
  l.owner = *owner;
  l.spec.name = "test";
  l.spec.work_dir = dir;
  l.spec.std_out = dir + "/out-%j";
  l.script = "#!/bin/sh\n" + script;
  l.placement = {{"n1", {0}, 64 << 20, 0, 1, {}, {}}};
  l.partition = "all";
  return l;
}

inline proto::ExitReport exit_of(FakeController& ctld, std::uint64_t job) {
  return ctld.expect<proto::ExitReport>([&](const auto& m) { return m.key == key(job); });
}

}  // namespace gantry::test
